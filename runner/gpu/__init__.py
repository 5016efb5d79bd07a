"""This host's GPUs: found, held by one job at a time, given to its container and no other, watched meanwhile.

* ``nvml``: what we ask of NVIDIA's management library, in our words; ``driver``: the real one behind it
* ``discovery``: which devices a job can be given
* ``access``: how an engine is asked for exactly the devices a job holds, and what an image's environment may not say
* ``pool``: lets one job hold its devices, in turn with every runner of the host
* ``health``: whether a device can be trusted before and after a job
* ``sampling``: what a job used, at least
* ``energy``: joules, from counters that wrap around and from samples of power
* ``words``: what a job used, for people
"""
