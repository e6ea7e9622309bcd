"""Programs that do the benchmark's job on other runtimes; each stands by itself, without fedsbc."""
