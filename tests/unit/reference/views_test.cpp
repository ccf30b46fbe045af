#include <gtest/gtest.h>

#include <cmath>

#include "backend/host_views.hpp"
#include "common/problem.hpp"

namespace dtrain::backend {
namespace {

using Values = std::vector<float>;

Values view(const Values& image, const nn::Shape& shape, int dy, int dx, bool mirror) {
  Values out(image.size());
  view_image(image.data(), shape, {dy, dx, mirror}, out.data());
  return out;
}

TEST(Views, MirrorAndMoveAnImageWithItsEdgeReflected) {
  const nn::Shape shape{1, 2, 3};
  const Values image{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(view(image, shape, 0, 0, false), image);
  EXPECT_EQ(view(image, shape, 0, 0, true), (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(view(image, shape, -1, -1, false), (Values{5, 4, 5, 2, 1, 2}));
  EXPECT_EQ(view(image, shape, 1, 1, false), (Values{5, 6, 5, 2, 3, 2}));
  EXPECT_EQ(view(image, shape, 1, 1, true), (Values{5, 6, 5, 2, 3, 2}));
  EXPECT_EQ(view(Values{1, 2}, {2, 1, 1}, 1, -1, true), (Values{1, 2}));
}

testing::Problem problem() {
  nn::GraphBuilder b("small", {2, 4, 5});
  const int conv = b.add("conv", nn::Convolution{.out = 3, .kernel_h = 3, .kernel_w = 2, .bias = true}, {b.input()});
  return testing::make_problem(b.finish(b.add("fc", nn::Dense{6}, {conv})), 9);
}

// The executable's own metrics of the mean of what it says of each view.
TEST(Views, CountTheMeanOfTheLogits) {
  const testing::Problem p = problem();
  const auto executable = make_reference_backend()->compile(p.graph, {.max_samples = 9, .top_k = 2, .training = false});
  executable->write_state(p.state);
  const auto logits_of = [&](int dy, int dx, bool mirror) {
    Values images(p.images.size()), logits(9 * 6);
    const auto size = static_cast<std::size_t>(p.graph.input().size());
    for (std::size_t i = 0; i < 9; ++i)
      view_image(&p.images[i * size], p.graph.input(), {dy, dx, mirror}, &images[i * size]);
    executable->evaluate({9, images.data(), p.labels.data(), p.sample_ids.data()}, logits);
    return logits;
  };
  Values mean(9 * 6);
  for (const bool mirror : {false, true}) {
    const Values centre = logits_of(0, 0, mirror), up = logits_of(-1, -1, mirror), down = logits_of(1, 1, mirror);
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += centre[k] / 4 + up[k] / 8 + down[k] / 8;
  }
  double loss = 0, correct = 0, top_2 = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const auto label = static_cast<std::size_t>(p.labels[i]);
    double sum = 0;
    int larger = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      sum += std::exp(static_cast<double>(mean[i * 6 + k]));
      larger += mean[i * 6 + k] > mean[i * 6 + label];
    }
    loss += std::log(sum) - static_cast<double>(mean[i * 6 + label]);
    correct += larger == 0;
    top_2 += larger < 2;
  }
  Values logits(9 * 6);
  const StepMetrics found = executable->evaluate(p.batch(), nn::image_views(6), logits);
  for (std::size_t k = 0; k < mean.size(); ++k) EXPECT_NEAR(logits[k], mean[k], 1e-6);
  EXPECT_NEAR(found.loss_sum, loss, 1e-5);
  EXPECT_EQ(found.correct, correct);
  EXPECT_EQ(found.top_k_correct, top_2);
  EXPECT_EQ(found.count, 9);
}

}  // namespace
}  // namespace dtrain::backend
