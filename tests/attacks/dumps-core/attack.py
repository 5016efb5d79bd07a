import os
import resource

from acts import tell

os.chdir("/data/outputs")
tell(limit=str(resource.getrlimit(resource.RLIMIT_CORE)))
os.abort()
