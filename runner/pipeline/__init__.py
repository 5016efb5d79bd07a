"""The flow: challenge and submissions become verdicts, scores, a ranking and a report; a function per step."""
