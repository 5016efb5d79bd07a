"""Gets an image (registry, archive, local, or a folder to build), pins it by digest, and says whose doing it is if not.

| file | in one sentence |
|---|---|
| ``source`` | what an image's text means; gets it, and pins it |
| ``pinned`` · ``refusal`` | what became of it · the error that says the image itself is at fault |
| ``pull`` | fetches from a registry: whose doing a failure is, and whether to ask again |
| ``archive`` | checks an archive whole, and loads it written anew |
| ``documents`` | the one image of an archive, by its JSON |
| ``members`` · ``unpacking`` | a tar as a stream · packed bytes, bounded |
| ``folder`` | builds a Dockerfile folder within limits |
| ``room`` | makes room on the engine's disk by removing what we brought there |
"""

from runner.images.archive import LoadedArchive, load_archive
from runner.images.folder import RISK, Build, BuildNetwork
from runner.images.pinned import PinnedImage, RefusedImage, SourceKind
from runner.images.refusal import Unusable
from runner.images.room import Fate, Room, free_below
from runner.images.source import Terms, pin, pin_again, source_kind

__all__ = [
    "RISK",
    "Build",
    "BuildNetwork",
    "Fate",
    "LoadedArchive",
    "PinnedImage",
    "RefusedImage",
    "Room",
    "SourceKind",
    "Terms",
    "Unusable",
    "free_below",
    "load_archive",
    "pin",
    "pin_again",
    "source_kind",
]
