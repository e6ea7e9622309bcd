"""A small Flower app: a two-layer network in NumPy on digits that it draws itself."""
