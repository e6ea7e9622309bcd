import numpy as np
import pytest
import torch
from torch.nn import functional

from fedsbc.evaluation import evaluate
from fedsbc.training import options_for_optimizer, options_for_schedule


def test_accuracy_and_loss_are_those_of_one_batch(bench, digits):
    model = bench("cnn-bn").model
    x, y = digits.test_tensors()
    found = evaluate(model, x, y, batch_size=300)
    with torch.no_grad():
        outputs = model.module.eval()(x)
    assert found.accuracy == (outputs.argmax(1) == y).sum().item() / 1000
    assert found.loss == pytest.approx(functional.cross_entropy(outputs, y).item(), rel=1e-5)
    assert found.num_samples == 1000


def test_pitfall_18_evaluating_leaves_no_trace(bench, digits):
    b = bench("cnn-bn")
    expected = b.train(digits)
    b.model.module.train()
    b.model.module.norm2.eval()
    kept = b.model.weights.copy(), b.model.buffers.copy()
    torch.manual_seed(3)
    evaluate(b.model, digits.test_images, digits.y_test)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1))
    assert (b.model.weights == kept[0]).all()
    assert (b.model.buffers == kept[1]).all()
    assert b.model.module.training
    assert not b.model.module.norm2.training
    assert (b.train(digits).delta == expected.delta).all()


def test_no_samples_are_no_division_by_zero(bench, digits):
    found = evaluate(bench().model, digits.test_images[:0], np.zeros(0, np.int64))
    assert (found.accuracy, found.loss, found.num_samples) == (0.0, 0.0, 0)


def test_lenet5_caffe_learns_digits(bench, digits):
    sgd = options_for_optimizer("sgd")(lr=0.1, momentum=0.5)
    schedule = options_for_schedule("cosine")(steps=200)
    b = bench("lenet5-caffe", batch_size=40, local_epochs=2, schedule=schedule, optimizer=sgd)
    result = b.train(digits, rows=range(4000))
    b.model.load(b.base + result.delta)
    found = evaluate(b.model, digits.test_images, digits.y_test)
    assert found.accuracy > 0.95
    assert found.loss < 0.2
