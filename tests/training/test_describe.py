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
        made("DataLoader", __module__="grain._src.python.data_loader"),
        made("_BatchDataset", __module__="tensorflow.python.data.ops.batch_op"),
    ):
        found = describe(other)
        assert found.sampler == "unknown" and "no amplification" in found.claim


def stages(*chain):
    """A stand-in for a data set of grain: (class, text, length) of each stage, source first."""
    last: tuple = ()
    for name, text, length in chain:
        content = {
            "parents": last,
            "__str__": lambda self, text=text: text,
            "__module__": "grain.x",
        }
        content["__len__"] = lambda self, length=length: length
        last = (type(name, (), content)(),)
    return last[0]


SOURCE = ("SourceMapDataset", "SourceMapDataset(source=list)", 105)
SHUFFLE = ("ShuffleMapDataset", "ShuffleMapDataset", 105)
REPEAT = ("RepeatMapDataset", "RepeatMapDataset(num_epochs=2)", 210)
BATCH = ("BatchMapDataset", "BatchMapDataset(batch_size=10, drop_remainder=False)", 11)
MAP = ("MapMapDataset", "MapMapDataset", 105)


@pytest.mark.parametrize(
    "chain, said, told",
    [
        ([SOURCE, SHUFFLE, MAP, BATCH], "shuffled", "the last batch of an epoch has 5 records"),
        ([SOURCE, SHUFFLE, REPEAT, BATCH], "shuffled", "run on from one epoch into the next"),
        ([SOURCE, SHUFFLE, BATCH], "shuffled", "seed of 32 bits"),
        ([SOURCE, MAP, BATCH], "deterministic", "divide by 10"),
        ([SOURCE, BATCH, SHUFFLE], "unknown", "batches are shuffled"),
        ([SOURCE, REPEAT, SHUFFLE, BATCH], "unknown", "several epochs are shuffled together"),
        ([SOURCE, ("WindowShuffleMapDataset", "", 105), BATCH], "unknown", "WindowShuffle"),
        ([SOURCE, ("FilterMapDataset", "", 105), BATCH], "unknown", "FilterMapDataset"),
        ([SOURCE, BATCH, BATCH], "unknown", "more than once"),
        ([BATCH], "unknown", "has 0 sources"),
    ],
)
def test_stages_of_grain(chain, said, told):
    found = describe(stages(*chain))
    assert found.sampler == said and told in str(found)
    assert ("sampling_prob = 1" in found.claim) == (said == "unknown")
    assert said == "unknown" or (found.dataset_size, found.batch_size) == (105, 10)


@pytest.mark.nightly
def test_pipelines_of_grain():
    grain = pytest.importorskip("grain")
    from grain import samplers

    data = grain.MapDataset.source(list(range(105)))
    shuffled = data.shuffle(seed=1).map(lambda x: x).batch(10, drop_remainder=True)
    for each in (shuffled, shuffled.to_iter_dataset()):
        found = describe(each)
        assert (found.sampler, found.dataset_size, found.batch_size) == ("shuffled", 105, 10)
        assert "dropped" in str(found)
    assert describe(data.batch(10)).sampler == "deterministic"
    for wrong in (data.batch(5).shuffle(seed=1), data.repeat(2).shuffle(seed=1).batch(5)):
        assert describe(wrong).sampler == "unknown"
    drawn = samplers.IndexSampler(num_records=105, shuffle=True, num_epochs=3, seed=1)
    assert (describe(drawn).sampler, describe(drawn).dataset_size) == ("shuffled", 105)
    plain = samplers.IndexSampler(num_records=105, shuffle=False, num_epochs=3, seed=1)
    assert describe(plain).sampler == "deterministic"
    assert describe(samplers.SequentialSampler(num_records=105)).sampler == "deterministic"
    loader = grain.DataLoader(data_source=list(range(105)), sampler=drawn)
    assert "describe the sampler" in str(describe(loader))


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
