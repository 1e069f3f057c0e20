# The problem on which all language packages agree: ten ratings by each of 60 users, who like either the even or the odd films.
fixture_ratings <- function() {
  i <- 0:599
  user <- i %/% 10
  film <- (3 * i + user %/% 2) %% 40
  data.frame(user = user + 1L, film = as.integer(film) + 1L, month = i %% 6L + 1L, rating = ifelse((user + film) %% 2 == 1, 2, 5))
}

fixture_matrix <- function() {
  genres <- matrix(0, 40, 2, dimnames = list(NULL, c("even", "odd")))
  genres[cbind(1:40, 0:39 %% 2 + 1)] <- 1
  genres
}

small_fit <- function(..., data = fixture_ratings()) s3cmtf(rating ~ user + film + month, data, rank = 3, epochs = 3, ...)

# The same ratings with names of users and films.
named_ratings <- function() {
  ratings <- fixture_ratings()
  ratings$user <- factor(paste0("u", ratings$user), levels = paste0("u", 1:60))
  ratings$film <- paste0("f", ratings$film)
  ratings
}

scratch <- function(name) {
  folder <- tempfile("s3cmtf")
  dir.create(folder)
  file.path(folder, name)
}
