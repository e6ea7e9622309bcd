"""The Flower ClientApp side: local training, compression, client state."""
