#include <cstdio>
#include <s3cmtf.hpp>

int main()
try {
    // Six ratings: user, film, month and stars.
    const std::uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
    const std::vector<float> stars = {5, 3, 4, 1, 3, 2};
    const s3cmtf::coo ratings(s3cmtf::entries(s3cmtf::cells::columns(user, film, month), stars));

    s3cmtf::options options("paper");
    options.parse("rank=2 epochs=10").set("eta", 0.05);
    s3cmtf::fit fit(s3cmtf::problem(ratings), options);
    const s3cmtf::model model = fit.run([](const s3cmtf::progress &p) {
        if (p.event == S3CMTF_EVENT_EPOCH)
            std::printf("epoch %d: training RMSE %.4f\n", static_cast<int>(p.epoch), p.train_rmse);
    });

    // The stars that user 0 would give film 2 in month 1.
    std::printf("prediction %.2f\n", model.predict_cell({0, 2, 1}));
    return 0;
} catch (const s3cmtf::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
