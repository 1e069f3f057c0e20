#include <cstdio>
#include <s3cmtf.hpp>

int main()
try {
    // Six ratings. The prediction is for user 0, film 2 and month 1.
    const std::uint32_t user[] = {0, 0, 1, 1, 2, 2}, film[] = {0, 1, 0, 2, 1, 2}, month[] = {0, 1, 1, 0, 0, 1};
    const std::vector<float> stars = {5, 3, 4, 1, 3, 2};
    const s3cmtf::entries ratings(s3cmtf::cells::columns(user, film, month), stars);
    const s3cmtf::model model = s3cmtf::fit_entries(ratings, "preset=paper rank=2 epochs=20 eta=0.05");
    std::printf("prediction %.2f\n", model.predict_cell({0, 2, 1}));
} catch (const s3cmtf::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
