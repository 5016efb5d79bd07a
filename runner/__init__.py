"""proctor: runs participants' containers on data they may not see, and turns what they wrote into a ranking."""

__version__ = "0.1.0"
