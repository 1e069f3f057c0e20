# Planted data in the shape of MovieLens: ratings in half stars by user, film and month, and the genres of the films.
films <- local({
  set.seed(20)
  genres <- c("Action", "Comedy", "Drama", "Horror", "Romance", "Sci-Fi")
  users <- 300
  films <- 120
  # Each film has one or two genres and a quality, each user likes or dislikes each genre.
  first <- rep_len(seq_along(genres), films)
  second <- sample(length(genres), films, replace = TRUE)
  has <- matrix(0, films, length(genres), dimnames = list(NULL, genres))
  has[cbind(seq_len(films), first)] <- 1
  pairs <- runif(films) < 0.4
  has[cbind(seq_len(films), second)[pairs, ]] <- 1
  titles <- sprintf("%s %d", apply(has == 1, 1, function(row) paste(genres[row], collapse = "/")), seq_len(films))
  kinds <- matrix(rnorm(3 * length(genres)), 3)
  taste <- kinds[sample(3, users, replace = TRUE), ] + 0.3 * rnorm(users * length(genres))
  quality <- 0.4 * rnorm(films)
  mood <- 0.3 * rnorm(users)
  # Horror is rated higher in October, romance in February.
  season <- matrix(0, 12, length(genres), dimnames = list(month.abb, genres))
  season["Oct", "Horror"] <- 1
  season["Feb", "Romance"] <- 1
  entries <- 9000
  user <- sample(users, entries, replace = TRUE)
  film <- sample(films, entries, replace = TRUE, prob = exp(quality) / seq(1, 4, length.out = films))
  month <- sample(12, entries, replace = TRUE)
  liking <- rowSums(has[film, ] * (taste[user, ] + season[month, ])) / rowSums(has[film, ])
  rating <- 3.4 + mood[user] + quality[film] + 0.8 * liking + 0.4 * rnorm(entries)
  ratings <- data.frame(
    user = factor(sprintf("u%03d", user)), film = factor(titles[film], levels = titles),
    month = factor(month.abb[month], levels = month.abb), rating = pmin(pmax(round(2 * rating) / 2, 0.5), 5)
  )
  ratings <- ratings[!duplicated(ratings[c("user", "film", "month")]), ]
  rownames(ratings) <- NULL
  listed <- which(has == 1, arr.ind = TRUE)
  listed <- listed[order(listed[, 1], listed[, 2]), ]
  list(ratings = ratings,
    genres = data.frame(film = factor(titles[listed[, 1]], levels = titles), genre = factor(genres[listed[, 2]])))
})
film_ratings <- films$ratings
film_genres <- films$genres
rm(films)
