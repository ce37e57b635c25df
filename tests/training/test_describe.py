"""Loaders are told by the names and public attributes of their classes."""

import pytest

from jaxgdp.training import describe


def loader(sampler, size=1000, batch_size=100, drop_last=False, batches="BatchSampler", **more):
    """A stand-in with the public attributes of torch's DataLoader."""
    drawn = type(
        batches, (), {"sampler": sampler, "batch_size": batch_size, "drop_last": drop_last}
    )()
    for name, value in more.items():
        setattr(drawn, name, value)
    content = {"dataset": range(size), "sampler": sampler, "batch_sampler": drawn}
    content |= {"batch_size": batch_size, "drop_last": drop_last}
    return type("DataLoader", (), content)()


def made(name, **attributes):
    return type(name, (), attributes)()


@pytest.mark.parametrize(
    "sampler, said",
    [
        (made("RandomSampler", replacement=False, num_samples=1000), "shuffled"),
        (made("RandomSampler", replacement=True, num_samples=1000), "unknown"),
        (made("RandomSampler", replacement=False, num_samples=3000), "unknown"),
        (made("WeightedRandomSampler"), "unknown"),
        (made("SequentialSampler"), "deterministic"),
        (made("DistributedSampler", shuffle=True), "shuffled"),
        (made("DistributedSampler", shuffle=False), "deterministic"),
        (made("SubsetRandomSampler"), "unknown"),
    ],
)
def test_samplers_of_records(sampler, said):
    found = describe(loader(sampler))
    assert found.sampler == said and found.dataset_size == 1000
    assert ("sampling_prob = 1" in found.claim) == (said == "unknown")


def test_last_batches():
    shuffled = made("RandomSampler", replacement=False, num_samples=1050)
    assert "has 50 records" in str(describe(loader(shuffled, size=1050)))
    assert "50 records of an epoch are dropped" in str(
        describe(loader(shuffled, size=1050, drop_last=True))
    )
    assert "records of an epoch" not in str(describe(loader(shuffled, size=1000)))


def test_poisson_batches():
    drawn = loader(None, batches="UniformWithReplacementSampler", sample_rate=0.02, batch_size=None)
    found = describe(drawn)
    assert (found.sampler, found.sampling_prob, found.batch_size) == ("poisson", 0.02, 20)
    assert "expected number of records" in str(found)


def test_unknown_loaders_claim_nothing():
    for other in (
        [1, 2],
        iter([1]),
        object(),
        made("PyGrainDatasetIterator", __module__="grain.x"),
    ):
        found = describe(other)
        assert found.sampler == "unknown" and "no amplification" in found.claim


@pytest.mark.nightly
def test_loaders_of_torch_and_opacus():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.zeros(105, 2))
    kinds = torch.utils.data
    assert describe(kinds.DataLoader(data, batch_size=10, shuffle=True)).sampler == "shuffled"
    plain = describe(kinds.DataLoader(data, batch_size=10, drop_last=True))
    assert plain.sampler == "deterministic" and "dropped" in str(plain)
    weighted = kinds.WeightedRandomSampler(torch.ones(105), 105)
    assert describe(kinds.DataLoader(data, batch_size=10, sampler=weighted)).sampler == "unknown"
    pytest.importorskip("opacus")
    from opacus.data_loader import DPDataLoader

    found = describe(DPDataLoader(data, sample_rate=0.1))
    assert found.sampler == "poisson" and found.sampling_prob == 0.1
