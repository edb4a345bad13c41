{"zbsolve_profile": 1, "devices": 2, "microbatches": 2,
 "time": {"unit": "ms", "f": 3, "b": 4, "w": 2, "comm": 1}}
