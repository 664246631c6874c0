"""Machine learning: searches and training loops by hand, scikit-learn through joblib, xgboost, dask-ml."""

import itertools
import time

import numpy as np

import dask
import dask.array as da
from distributed import Variable, as_completed, get_client, secede, rejoin, worker_client
from kit import brief, failure, needs, slow

RIDGES = (0.01, 0.1, 1.0, 10.0)


def samples(seed=1, rows=120):
    """Points on a plane, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    return x, x @ np.array([2.0, -1.0, 0.5]) + 0.1 * rng.normal(size=rows)


def ridge(x, y, strength):
    return np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y)


def loss(weights, x, y):
    return float(((x @ weights - y) ** 2).mean())


def fold(data, n, folds=4):
    """Training and test parts of the data."""
    x, y = data
    held = np.arange(len(x)) % folds == n
    return (x[~held], y[~held]), (x[held], y[held])


def validated(data, n, strength):
    (x, y), (test_x, test_y) = fold(data, n)
    return loss(ridge(x, y, strength), test_x, test_y)


def one_step(model, data, rate=0.05):
    """One pass of gradient descent."""
    x, y = data
    weights = model["weights"] - rate * 2 * x.T @ (x @ model["weights"] - y) / len(x)
    return {"weights": weights, "passes": model["passes"] + 1, "rate": rate}


def fresh(n=0):
    return {"weights": np.full(3, float(n)), "passes": 0}


def score(model, data):
    return loss(model["weights"], *data)


@brief
def case_grid_by_map(client):
    data = client.scatter(samples(), broadcast=True)
    grid = list(itertools.product(range(4), RIDGES))
    scores = client.gather([client.submit(validated, data, n, strength) for n, strength in grid])
    means = {strength: np.mean([s for (_, r), s in zip(grid, scores) if r == strength]) for strength in RIDGES}
    return means, min(means, key=means.get)


def case_scores_as_they_complete(client):
    data = client.scatter(samples())
    strength_of = {client.submit(validated, data, 0, strength, pure=False): strength for strength in RIDGES}
    found = {}
    for future, value in as_completed(strength_of, with_results=True):
        found[strength_of[future]] = value
    return found, min(found, key=found.get)


def case_search_that_adds_candidates(client):
    """Each result decides what is tried next: a search by thirds."""
    data = client.scatter(samples())

    def valley(at):
        return client.submit(lambda d, at: (abs(np.log10(at) + 1) + 0 * d[0].sum(), at), data, at, pure=False)

    running = as_completed([valley(at) for at in (1e-3, 1e0, 1e2)])
    best, tried = (np.inf, None), 0
    for future in running:
        value, at = future.result()
        tried += 1
        if tried < 12 and value < best[0]:
            running.update([valley(at / 3), valley(at * 3)])
        best = min(best, (value, at))
    return best[0] < 1.5, tried >= 5, running.count()


def case_successive_halving(client):
    """Of eight models the better half is trained on, until one is left."""
    train, test = client.scatter([samples(), samples(2)], hash=False)
    models = {rate: client.submit(fresh, rate) for rate in (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)}
    rounds = []
    while len(models) > 1:
        for _ in range(3):
            models = {rate: client.submit(one_step, model, train, rate) for rate, model in models.items()}
        scores = client.gather({rate: client.submit(score, model, test) for rate, model in models.items()})
        kept = sorted(scores, key=scores.get)[: len(scores) // 2]
        rounds.append([len(scores), kept])
        models = {rate: models[rate] for rate in kept}
    (model,) = models.values()
    return rounds, model.result()["passes"]


@brief
def case_incremental_training(client):
    """A model goes through the blocks of an array, one after the other."""
    x, y = samples()
    blocks_x, blocks_y = da.from_array(x, chunks=(30, 3)), da.from_array(y, chunks=30)
    parts = list(zip(blocks_x.to_delayed().ravel(), blocks_y.to_delayed().ravel()))
    model = dask.delayed(fresh)()
    for _ in range(3):
        for part in parts:
            model = dask.delayed(one_step)(model, part)
    done = model.compute()
    return done["weights"], done["passes"]


def case_gradients_by_parts(client):
    """Data stays on the workers, weights go round."""
    parts = client.scatter([samples(seed, rows=40) for seed in range(4)])
    weights = np.zeros(3)
    for _ in range(5):
        shared = client.scatter(weights, broadcast=True, hash=False)
        slopes = client.map(lambda part, w: 2 * part[0].T @ (part[0] @ w - part[1]) / len(part[0]), parts, w=shared, pure=False)
        weights = weights - 0.1 * client.submit(sum, slopes).result() / len(parts)
    return weights


class Parameters:
    """What a parameter server holds."""

    updates = 0

    def __init__(self):
        self.weights = np.zeros(3)

    def now(self):
        return self.weights

    def add(self, change):
        self.weights = self.weights + change
        self.updates += 1
        return self.updates


def case_parameter_server(client):
    server = client.submit(Parameters, actor=True, pure=False).result()

    def learn(server, seed):
        x, y = samples(seed, rows=60)
        for _ in range(4):
            weights = server.now().result()
            server.add(-0.02 * 2 * x.T @ (x @ weights - y) / len(x)).result()
        return seed

    seeds = client.gather(client.map(learn, [server] * 3, range(3), pure=False))
    weights = server.now().result()
    return seeds, server.updates, loss(weights, *samples(9)) < loss(np.zeros(3), *samples(9))


def case_tasks_that_train_in_tasks(client):
    def best_of(strengths):
        with worker_client() as inner:
            data = inner.scatter(samples())
            scores = inner.gather([inner.submit(validated, data, 1, strength) for strength in strengths])
        return min(zip(scores, strengths))

    halves = client.map(best_of, [RIDGES[:2], RIDGES[2:]], pure=False)
    return client.submit(min, halves).result()


def case_outer_and_inner_folds(client):
    def outer(n):
        inner_client = get_client()
        train, test = fold(samples(), n)
        inner = inner_client.map(lambda strength: (validated(train, 0, strength), strength), RIDGES, pure=False)
        secede()
        found = inner_client.gather(inner)
        rejoin()
        return loss(ridge(*train, min(found)[1]), *test)

    return client.gather(client.map(outer, range(3), pure=False))


def case_early_stop(client):
    """The first score that is good enough ends the search; the rest is cancelled."""

    def attempt(n):
        time.sleep(0.02 if n == 0 else 0.4)
        return n, 1.0 / (1 + n)

    futures = client.map(attempt, range(12), pure=False)
    for future, (n, value) in as_completed(futures, with_results=True):
        if value >= 0.9:
            break
    client.cancel(futures)
    return n, value, sorted({f.status for f in futures}), client.submit(pow, 2, 5).result()


def case_stop_by_a_variable(client):
    go = Variable("train on")
    go.set(True)

    def train(name):
        variable = Variable(name)
        model, data = fresh(), samples()
        while variable.get():
            model = one_step(model, data)
            time.sleep(0.01)
        return model["passes"] > 0

    running = client.submit(train, "train on", pure=False)
    time.sleep(0.3)
    go.set(False)
    return running.result(timeout=20)


def case_a_fit_that_fails(client):
    data = client.scatter(samples())

    def fit(data, strength):
        if strength < 0:
            raise ValueError(f"the strength is {strength}")
        return ridge(*data, strength)

    futures = [client.submit(fit, data, strength) for strength in (1.0, -1.0, 2.0)]
    mean = client.submit(lambda fits: sum(fits) / len(fits), futures)
    return len(client.gather(futures, errors="skip")), failure(mean.result), [f.status for f in futures[::2]]


def case_cross_validation_as_a_graph(client):
    data = dask.delayed(samples)()
    scores = {r: dask.delayed(np.mean)([dask.delayed(validated)(data, n, r) for n in range(4)]) for r in RIDGES}
    best = dask.delayed(lambda found: min(found, key=found.get))(scores)
    return dask.compute(scores, best)


def case_ensemble_of_bootstraps(client):
    data = client.scatter(samples(), broadcast=True)

    def member(data, seed):
        x, y = data
        chosen = np.random.default_rng(seed).integers(0, len(x), len(x))
        return ridge(x[chosen], y[chosen], 0.1)

    members = client.map(member, [data] * 16, range(16))
    return client.submit(np.mean, members, axis=0).result(), client.submit(np.std, members, axis=0).result()


def case_least_squares_of_blocks(client):
    needs("scipy")
    x, y = samples(rows=400)
    blocks = da.from_array(x, chunks=(100, 3))
    weights, residue, rank, _ = da.linalg.lstsq(blocks, da.from_array(y, chunks=100))
    q, r = da.linalg.qr(blocks)
    return dask.compute(weights, residue, rank, abs(q @ r - blocks).max() < 1e-9)


def case_k_means(client):
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.normal(size=(60, 2)) + centre for centre in ((0, 0), (6, 0), (0, 6))])
    blocks = da.from_array(points, chunks=(45, 2)).persist()
    centres = points[[0, 60, 120]]
    for _ in range(4):
        nearest = ((blocks[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        marks = nearest[:, None] == np.arange(3)[None]
        sums = (blocks[:, None, :] * marks[:, :, None]).sum(axis=0)
        centres = (sums / marks.sum(axis=0)[:, None]).compute()
    return centres


def case_joblib(client):
    joblib = needs("joblib")

    with joblib.parallel_backend("dask"):
        return joblib.Parallel()(joblib.delayed(pow)(n, 2) for n in range(20))


@slow
def case_grid_search(client):
    needs("sklearn")
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    x, y = load_iris(return_X_y=True)
    search = GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, cv=3)
    with joblib.parallel_backend("dask"):
        search.fit(x, y)
    return search.best_params_, round(search.best_score_, 6)


@slow
def case_cross_validation_by_joblib(client):
    needs("sklearn")
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    x, y = load_iris(return_X_y=True)
    with joblib.parallel_backend("dask"):
        return cross_val_score(DecisionTreeClassifier(random_state=2), x, y, cv=5)


def case_partial_fits(client):
    needs("sklearn")
    from sklearn.linear_model import SGDRegressor

    def fit(model, part):
        return model.partial_fit(*part)

    model = client.submit(SGDRegressor, random_state=3, pure=False)
    for part in client.scatter([samples(seed) for seed in range(4)]):
        model = client.submit(fit, model, part)
    return client.submit(lambda m: (m.coef_, m.t_), model).result()


@slow
def case_forest(client):
    needs("sklearn")
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    x, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=12, random_state=1)
    with joblib.parallel_backend("dask"):
        forest.fit(x, y)
    return round(forest.score(x, y), 6)


@slow
def case_xgboost(client):
    xgboost = needs("xgboost")
    import xgboost.dask  # noqa: F811

    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 4))
    y = (x[:, 0] + x[:, 1] > 0).astype(float)
    data = xgboost.dask.DaskDMatrix(client, da.from_array(x, chunks=(100, 4)), da.from_array(y, chunks=100))
    trained = xgboost.dask.train(client, {"objective": "binary:logistic", "seed": 1}, data, num_boost_round=3)
    guess = xgboost.dask.predict(client, trained, data).compute()
    return len(trained["booster"].get_dump()), float(((guess > 0.5) == y).mean()) > 0.9


def case_dask_ml(client):
    needs("dask_ml")
    from dask_ml.preprocessing import StandardScaler

    x = da.from_array(np.arange(40.0).reshape(20, 2), chunks=(5, 2))
    return StandardScaler().fit_transform(x).sum().compute()
