#include <algorithm>

#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/whiten.hpp>

#include "loop/first_state.hpp"
#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

class FirstState : public TinyTraining {
 protected:
  static nn::Graph whitening_network() {
    const nn::Convolution whiten{
        .out = 24, .kernel_h = 2, .kernel_w = 2, .bias = true, .frozen = true, .initial = nn::InitialWeight::whitening};
    nn::GraphBuilder builder("whitening", kTinyImage);
    const int gelu =
        builder.add("gelu", nn::Activation{nn::ActivationKind::gelu}, {builder.add("whiten", whiten, {0})});
    return builder.finish(builder.add("fc", nn::Dense{kTinyClasses}, {gelu}));
  }
  static std::span<const float> tensor(const nn::Graph& graph, const std::vector<float>& parameters, int index) {
    const nn::TensorView& view = graph.parameters[static_cast<std::size_t>(index)];
    return std::span(parameters).subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
  }
};

TEST_F(FirstState, WhitensTheImagesThatTrainingSeesFirst) {
  const nn::Graph graph = whitening_network();
  data::Loader training = loader(), again = loader();
  const backend::ModelState state = first_state(graph, options_, training);

  again.start(0, {{0, kTinySamples}});
  const data::Batch all = again.next().value();
  std::vector<float> expected(state.parameters.size());
  nn::initialize_parameters(graph, options_.seed, expected);
  const std::vector<float> drawn = expected;
  nn::whiten(graph, std::span(all.images, static_cast<std::size_t>(kTinySamples * kTinyImage.size())), expected);
  EXPECT_EQ(state.parameters, expected);
  EXPECT_NE(state.parameters, drawn);
  expect_same_bits(first_state(graph, options_, training), state);
}

TEST_F(FirstState, AFrozenWeightStaysAsItBeganAndItsBiasLearns) {
  const nn::Graph graph = whitening_network();
  data::Loader training = loader();
  const backend::ModelState first = first_state(graph, options_, training);
  const auto executable = backend::make_reference_backend()->compile(graph, {.max_samples = kTinySamples});
  const auto alone = elastic::make_fixed_membership(comm::make_single());
  IgnoringObserver observer;
  train(graph, *executable, training, nullptr, *alone, options_, nullptr, observer);
  const std::vector<float>& last = executable->state().parameters;
  EXPECT_TRUE(std::ranges::equal(tensor(graph, last, 0), tensor(graph, first.parameters, 0)));
  EXPECT_FALSE(std::ranges::equal(tensor(graph, last, 1), tensor(graph, first.parameters, 1)));
}

}  // namespace
}  // namespace dtrain::train
