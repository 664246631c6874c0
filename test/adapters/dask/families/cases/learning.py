"""Machine learning: scikit-learn through joblib, xgboost, dask-ml."""

import numpy as np

import dask.array as da
from kit import needs, slow


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
