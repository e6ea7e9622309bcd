"""How whole numbers become bits: fixed-width runs, Rice codes, sorted positions, samples."""
