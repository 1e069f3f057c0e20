# %% [markdown]
# # Ratings of films: a tutorial
#
# This notebook fits ratings by user, film and month together with the genres of the films. It predicts ratings with intervals,
# recommends films, groups them, and adds a new user. Run it in an editor that knows `# %%` cells, or as a program: plots are
# written to PNG files.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

import s3cmtf
from s3cmtf import plot

# %% [markdown]
# ## Data
#
# Data in the shape of MovieLens: 400 users, 300 films of 5 genres, 24 months. Each user likes some genres more than others, some
# films are better than others, and ratings are half stars.

# %%
random = np.random.default_rng(1)
GENRES = ["Comedy", "Drama", "Horror", "Science Fiction", "Western"]
genre = random.integers(5, size=300)
films = np.array([f"{GENRES[of]} {number}" for number, of in enumerate(genre)])
users = np.array([f"user {number:03}" for number in range(400)])
taste = random.normal(0, 0.8, (400, 5))
quality = random.normal(0, 0.4, 300)

user = random.integers(400, size=24_000)
film = (300 * random.random(24_000) ** 1.5).astype(int)
month = random.integers(24, size=24_000)
stars = 3.4 + taste[user, genre[film]] + quality[film] + random.normal(0, 0.6, 24_000)
frame = pd.DataFrame({"user": users[user], "film": films[film], "month": month, "stars": (2 * stars).round().clip(1, 10) / 2})
frame = frame.drop_duplicates(["user", "film"], ignore_index=True)
print(frame.head())

# %% [markdown]
# Users and films are labels, months are numbers. A tenth of the ratings is held out for the test.

# %%
ratings = s3cmtf.Tensor.from_frame(frame, modes=["user", "film", "month"], value="stars")
train, test = ratings.split(test=0.1, seed=1)
print(ratings, ratings.summary(), sep="\n")

# %% [markdown]
# ## Fit
#
# Without options the fit chooses model, rank, learning rate and penalties from the data. Compare the error with that of the mean.

# %%
plain = s3cmtf.fit(train, test=test)
print(plain)
print(f"test RMSE {plain.evaluate(test).rmse:.3f}; standard deviation of the ratings {test.summary().standard_deviation:.3f}")

plot.convergence(plain)
plt.savefig("convergence.png", dpi=100)

# %% [markdown]
# ## Genres
#
# A matrix that is coupled to the films: a cell is 1 if the film has the genre. All other cells are 0, so the kind is "full". Rows
# are the films in the order of their labels.

# %%
labels = ratings.labels[1]
rows = np.arange(len(labels))
columns = [GENRES.index(label.rsplit(" ", 1)[0]) for label in labels]
matrix = sp.csr_array((np.ones(len(labels)), (rows, columns)), shape=(len(labels), len(GENRES)))
genres = s3cmtf.Matrix(s3cmtf.Tensor.from_scipy(matrix, labels=[labels, GENRES]), "film", "full")
coupled = s3cmtf.fit(train, genres, test=test)
print(f"test RMSE with genres {coupled.evaluate(test).rmse:.3f}")
print(coupled.notes[0])

# %% [markdown]
# ## Intervals
#
# A model of Gibbs sampling knows how uncertain its predictions are. Nine of ten test ratings should be inside the 90% intervals.

# %%
gibbs = s3cmtf.fit(train, genres, algorithm="gibbs", rank=8)
predictions = gibbs.predict(test, quantiles=(0.05, 0.95))
inside = (test.values >= predictions.quantiles[:, 0]) & (test.values <= predictions.quantiles[:, 1])
print(f"test RMSE {gibbs.evaluate(test).rmse:.3f}; {inside.mean():.0%} of the test ratings are inside their 90% intervals")
print(gibbs.evaluate_distributions(test))

# %% [markdown]
# ## Recommendations
#
# Films that a user has rated are left out. With `quantile=0.1` films whose prediction is uncertain come later.

# %%
name = "user 017"
print("genres that the user likes:", [GENRES[of] for of in np.argsort(-taste[17])[:2]])
print(gibbs.recommend("film", {"user": name}, top=5, exclude=ratings))
print(gibbs.recommend("film", {"user": name}, top=5, exclude=ratings, quantile=0.1).to_pandas())
print(gibbs.similar("film", films[0], top=3))
print(gibbs.evaluate_ranking(test, train, mode="film", user_mode="user", relevant=4))

# %% [markdown]
# ## Clusters
#
# The gap statistic selects the number of clusters. The genres that are over-represented in a cluster label it.

# %%
clusters = coupled.clusters("film", max_k=9, matrices=[genres])
for number, cluster in enumerate(clusters):
    print(number, cluster.size, [label.label for label in cluster.labels[:2]], list(cluster.member_labels[:2]))

plot.gap(clusters)
plt.savefig("gap.png", dpi=100)
plot.cluster_sizes(clusters)
plt.savefig("clusters.png", dpi=100)

# %%
small = s3cmtf.fit(train, genres, model="tucker", rank=5)
plot.factor(small, "film", (0, 1), clusters=small.clusters("film", len(clusters)), names=6)
plt.savefig("factor.png", dpi=100)

# %% [markdown]
# ## A new user
#
# Three ratings are enough for a first list. `like=gibbs` gives films the rows that they have in the model; the new user gets the
# next row.

# %%
known = [label for label in labels if label.startswith("Western")][:2] + [
    label for label in labels if label.startswith("Horror")
][:1]
new = pd.DataFrame({"user": "nina", "film": known, "month": 23, "stars": [5.0, 4.5, 1.0]})
entries = s3cmtf.Tensor.from_frame(new, like=gibbs)
grown = gibbs.fold_in("user", entries)
print(grown.recommend("film", {"user": "nina"}, top=5, exclude=entries))

# %% [markdown]
# ## Files
#
# Labels are written beside the model. The command-line program reads the same files.

# %%
grown.save("films.s3m")
again = s3cmtf.Model.load("films.s3m", modes=["user", "film", "month"])
print(again.predict_cell("nina", known[0], 23), grown.predict_cell("nina", known[0], 23))
