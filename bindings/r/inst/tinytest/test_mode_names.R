# Names of modes beside a model, in the form of all packages, and files of a model that another one replaces.
source("helper.R")
sha256 <- function(text) .Call(s3cmtf:::r_sha256, charToRaw(text))
expect_equal(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
expect_equal(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
expect_equal(sha256(strrep("a", 55)), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318")
expect_equal(sha256(strrep("a", 56)), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a")
expect_equal(sha256(strrep("a", 1e6)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")

ratings <- named_ratings()
genres <- fixture_matrix()
rownames(genres) <- paste0("f", 1:40)
path <- scratch("model.s3m")
beside <- function(end) paste0(path, ".", end)
end <- function() sort(sub("model.s3m.", "", setdiff(list.files(dirname(path)), "model.s3m"), fixed = TRUE))
named <- s3cmtf(rating ~ user + film + month, transform(ratings, month = paste("month", month)), list(film = coupled(genres, "full", weight = 1)), rank = 2, epochs = 1)
save_model(named, path)
expect_equal(end(), c("matrix1.tsv", "mode1.tsv", "mode2.tsv", "mode3.tsv", "modes.tsv", "rds"))
lines <- readLines(beside("modes.tsv"))
bytes <- readBin(path, raw(), file.size(path))
digest <- .Call(s3cmtf:::r_sha256, c(head(bytes, 65536), tail(bytes, 65536)))
expect_equal(lines, c(paste0("index\tname\t", digest), "1\tuser", "2\tfilm", "3\tmonth"))
expect_equal(readLines(beside("matrix1.tsv")), c("index\tname", "1\teven", "2\todd"))

# Names with escapes and of other scripts.
odd <- named
odd$modes <- c("a\tb\\t", "\u043c\u0435\u0441\u044f\u0446", "\\n\n")
save_model(odd, path)
unlink(beside("rds"))
expect_equal(load_model(path)$modes, odd$modes)
odd$modes[2] <- "\xff"
Encoding(odd$modes) <- "UTF-8"
expect_error(save_model(odd, path), pattern = "name 2 of model.s3m.modes.tsv is not valid UTF-8", class = "s3cmtf_BAD_ARGUMENT")

# Files that do not belong to the model or are damaged.
save_model(named, path)
unlink(beside("rds"))
lines <- readLines(beside("modes.tsv"))
for (wrong in list(character(), "index\tname", lines[-4], c(lines, "4\tfourth"), sub("film", "user", lines), sub("film", "", lines),
  sub("\tname\t.", "\tname\t ", lines), c(lines[1:3], "3\t\xff"))) {
  writeLines(wrong, beside("modes.tsv"), useBytes = TRUE)
  expect_warning(loaded <- load_model(path), "names of modes in .*model.s3m.modes.tsv are ignored", class = "s3cmtf_warning")
  expect_equal(loaded$modes, c("mode1", "mode2", "mode3"))
}

# A model without names does not get those of its predecessor.
save_model(named, path)
bare <- s3cmtf(coo_tensor(1:3, 1:3, values = 1:3), rank = 1, epochs = 1)
save_model(bare, path)
expect_equal(end(), "rds")
loaded <- load_model(path)
expect_equal(loaded$modes, c("mode1", "mode2"))
expect_equal(lengths(loaded$labels), c(0, 0))
save_model(named, path)
all_named <- s3cmtf(coo_tensor(c("a", "b"), c("x", "y"), values = 1:2), rank = 1, epochs = 1)
save_model(all_named, path)
expect_equal(end(), c("mode1.tsv", "mode2.tsv"))
expect_equal(load_model(path)$labels, list(c("a", "b"), c("x", "y")))
save_model(named, path)
dir.create(beside("mode9.tsv"))
save_model(bare, path)
expect_true(dir.exists(beside("mode9.tsv")))
# A file of names in another format is the user's own and stays.
writeLines(c("1,eins", "2,zwei", "3,drei"), beside("mode1.tsv"))
save_model(bare, path)
expect_equal(load_model(path)$labels[[1]], c("eins", "zwei", "drei"))

# A checkpoint that replaces a model, also if the fit does not end well.
checkpoint <- scratch("run.s3m")
run <- function(data, ...) s3cmtf(rating ~ user + film + month, data, rank = 2, epochs = 2, checkpoint = checkpoint, ...)
for (save in list(function() save_model(named, checkpoint), function() run(ratings))) {
  save()
  expect_equal(lengths(load_model(checkpoint)$labels)[1:2], c(60, 40))
  run(fixture_ratings())
  expect_silent(loaded <- load_model(checkpoint))
  expect_equal(loaded$modes, c("user", "film", "month"))
  expect_equal(lengths(loaded$labels), c(0, 0, 0))
}
run(ratings)
fail <- function(state) if (state$epoch > 1) stop("enough")
expect_error(s3cmtf(rating ~ user + film + month, fixture_ratings(), rank = 2, epochs = 1e6, checkpoint = checkpoint, checkpoint_every = 1, progress = fail), "enough")
expect_equal(lengths(load_model(checkpoint)$labels), c(0, 0, 0))
run(ratings)
expect_error(run(fixture_ratings(), eta = -1), class = "s3cmtf_BAD_ARGUMENT")
expect_equal(lengths(load_model(checkpoint)$labels), c(60, 40, 0))
expect_equal(run(ratings, resume = checkpoint)$modes, c("user", "film", "month"))

# Tensors, their corrected copies and splits.
data <- scratch("ratings.coo")
tensor <- as_coo_tensor(rating ~ user + film + month, ratings)
plain <- as_coo_tensor(rating ~ user + film + month, fixture_ratings())
labels_after <- function(write, file = data) {
  write_coo(tensor, file)
  write()
  lengths(open_coo(data)$labels)
}
expect_equal(labels_after(function() NULL), c(60, 40, 0))
expect_equal(labels_after(function() write_coo(plain, data)), c(0, 0, 0))
expect_equal(labels_after(function() fix_coo(plain, data)), c(0, 0, 0))
split_coo(tensor, sub(".coo", "", data))
expect_equal(lengths(split_coo(plain, sub(".coo", "", data))$train$labels), c(0, 0, 0))
expect_equal(lengths(open_coo(sub("coo", "train.coo", data))$labels), c(0, 0, 0))
expect_false(any(grepl("mode[0-9]", list.files(dirname(data)))))

# Rows without a name of their own have their number.
write_coo(coo_tensor(c("a", "", "c", "d"), 1:4), data)
expect_equal(open_coo(data)$labels[[1]], c("a", "", "c", "d"))
writeLines(c("index\tname", "1\ta", "3\ta", "4\td"), sub("coo", "mode1.tsv", data))
expect_equal(as.vector(open_coo(data)$labels[[1]]), c("a", "#2", "a#3", "d"))
