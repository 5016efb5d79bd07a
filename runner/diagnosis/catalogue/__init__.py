"""The known failures, a file a subject; their order is what decides between entries that fit equally well."""

from runner.diagnosis.catalogue.answer import ANSWER
from runner.diagnosis.catalogue.contents import CONTENTS
from runner.diagnosis.catalogue.gpus import GPUS
from runner.diagnosis.catalogue.libraries import LIBRARIES
from runner.diagnosis.catalogue.limits import LIMITS
from runner.diagnosis.catalogue.start import START
from runner.diagnosis.catalogue.stream import STREAM
from runner.diagnosis.catalogue.surroundings import SURROUNDINGS
from runner.diagnosis.catalogue.verdicts import VERDICTS
from runner.diagnosis.known import KnownFailure

SUBJECTS: dict[str, tuple[KnownFailure, ...]] = {
    "Starting the program": START,
    "Libraries and programs": LIBRARIES,
    "GPUs": GPUS,
    "What a container may reach": SURROUNDINGS,
    "Time, memory and other limits": LIMITS,
    "The file that is due": ANSWER,
    "What the file holds": CONTENTS,
    "Frames one by one": STREAM,
    "The verdict alone": VERDICTS,
}

CATALOGUE = tuple(entry for entries in SUBJECTS.values() for entry in entries)
