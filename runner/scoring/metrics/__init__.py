"""Metrics. Every undefined case is decided by an argument, never by a library's default.

A file a family: ``labels`` (classes of frames), ``delays`` (forgiven transitions), ``segments`` (runs), ``ranked``
(scores of many classes), ``masks`` and ``surface`` (label images). ``counts`` holds the formulas of
precision, recall, F1 and IoU and their means over classes, which labels and masks share:

    counts = count_labels(reference, prediction, labels=range(7))
    macro(precision(counts), counts, averaged_over=AveragedOver.REFERENCE, undefined=Undefined.ZERO)
"""

from runner.formats.palette import Decoded, Palette
from runner.scoring.metrics.counts import (
    Counts,
    counts_of,
    f1,
    iou,
    macro,
    means_over_classes,
    pooled,
    precision,
    recall,
    weighted,
)
from runner.scoring.metrics.delays import Between, Forgiving, TransitionType, adjusted, delay_scores
from runner.scoring.metrics.labels import (
    FrameScores,
    Labels,
    Sets,
    accuracy,
    balanced_accuracy,
    confusion,
    count_labels,
    count_sets,
    frame_scores,
    macro_f1,
    published_instrument_f1,
    published_step_f1,
    sets_of,
)
from runner.scoring.metrics.masks import (
    MaskCounter,
    Measure,
    SequenceMean,
    SequenceWeight,
    frame_overlap,
    joint_histogram,
    mean_over_frames,
    mean_over_sequences,
)
from runner.scoring.metrics.policies import AveragedOver, Undefined
from runner.scoring.metrics.ranked import (
    MeanPrecision,
    average_precision,
    component_groups,
    component_values,
    mean_precision,
    top_k_recall,
    video_precision,
)
from runner.scoring.metrics.segments import Reaches, edit_score, segmental_f1, segments
from runner.scoring.metrics.surface import normalised_surface_distance, outline

__all__ = [
    "AveragedOver",
    "Between",
    "Counts",
    "Decoded",
    "Forgiving",
    "FrameScores",
    "Labels",
    "MaskCounter",
    "MeanPrecision",
    "Measure",
    "Palette",
    "Reaches",
    "SequenceMean",
    "SequenceWeight",
    "Sets",
    "TransitionType",
    "Undefined",
    "accuracy",
    "adjusted",
    "average_precision",
    "balanced_accuracy",
    "component_groups",
    "component_values",
    "confusion",
    "count_labels",
    "count_sets",
    "counts_of",
    "delay_scores",
    "edit_score",
    "f1",
    "frame_overlap",
    "frame_scores",
    "iou",
    "joint_histogram",
    "macro",
    "macro_f1",
    "mean_over_frames",
    "mean_over_sequences",
    "mean_precision",
    "means_over_classes",
    "normalised_surface_distance",
    "outline",
    "pooled",
    "precision",
    "published_instrument_f1",
    "published_step_f1",
    "recall",
    "segmental_f1",
    "segments",
    "sets_of",
    "top_k_recall",
    "video_precision",
    "weighted",
]
