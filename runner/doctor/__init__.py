"""Is this host fit: engine, isolation probes, GPUs, disk, clock; each finding names its remedy."""
