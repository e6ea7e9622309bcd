"""A two-layer network in NumPy, and digits drawn from noise around ten patterns."""

import numpy as np

PIXELS, HIDDEN, CLASSES = 28 * 28, 126, 10  # 100,180 parameters


def initial_parameters(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "w1": rng.normal(0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": rng.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, CLASSES)).astype(np.float32),
        "b2": np.zeros(CLASSES, np.float32),
    }


def samples(seed, count=500):
    patterns = np.random.default_rng(99).normal(size=(CLASSES, PIXELS))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    images = patterns[labels] + rng.normal(0, 3, (count, PIXELS))
    return images.astype(np.float32), labels


def forward(parameters, images):
    hidden = np.maximum(images @ parameters["w1"] + parameters["b1"], 0)
    scores = hidden @ parameters["w2"] + parameters["b2"]
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    return hidden, odds / odds.sum(axis=1, keepdims=True)


def train(parameters, images, labels, steps=10, lr=0.5):
    """Return the parameters after some steps of gradient descent, and the last loss."""
    wanted = np.eye(CLASSES, dtype=np.float32)[labels]
    loss = 0.0
    for _ in range(steps):
        hidden, chances = forward(parameters, images)
        loss = float(-np.log(chances[np.arange(len(labels)), labels] + 1e-9).mean())
        error = (chances - wanted) / len(labels)
        back = (error @ parameters["w2"].T) * (hidden > 0)
        slopes = {
            "w1": images.T @ back,
            "b1": back.sum(axis=0),
            "w2": hidden.T @ error,
            "b2": error.sum(axis=0),
        }
        parameters = {name: value - lr * slopes[name] for name, value in parameters.items()}
    return parameters, loss


def accuracy(parameters, images, labels):
    return float((forward(parameters, images)[1].argmax(axis=1) == labels).mean())
