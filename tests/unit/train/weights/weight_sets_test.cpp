#include "weights/weight_sets.hpp"

#include <gtest/gtest.h>

#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

ForeignTensor named(const std::string& name) {
  ForeignTensor tensor;
  tensor.name = name;
  return tensor;
}

// A file in which each of these prefixes stands before the names of the network.
std::vector<WeightSet> sets_of(const std::vector<std::string>& prefixes, std::vector<ForeignTensor>& tensors) {
  for (const std::string& prefix : prefixes) {
    for (const char* const name : {"fc.weight", "fc.bias"}) tensors.push_back(named(prefix + name));
  }
  return weight_sets({"fc.weight", "fc.bias"}, tensors);
}

TEST(WeightSets, AreTrainedOnesBeforeAverages) {
  for (const auto& [prefixes, first] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"ema.", "model."}, "model."},
                                                                     {{"a_ema.module.", "state_dict."}, "state_dict."},
                                                                     {{"student.", "teacher."}, "student."},
                                                                     {{"averaged_ema.", "weights."}, "weights."},
                                                                     {{"b.", "a."}, "a."},
                                                                     {{"ema.", ""}, ""}}) {
    std::vector<ForeignTensor> tensors;
    const std::vector<WeightSet> sets = sets_of(prefixes, tensors);
    ASSERT_EQ(sets.size(), 2u);
    EXPECT_EQ(sets.front().prefix, first);
  }
}

TEST(WeightSets, AreNamedWhereThereAreSeveral) {
  std::vector<ForeignTensor> two, one;
  EXPECT_EQ(choice_of_sets(sets_of({"ema.", "model."}, two)),
            "of its whole sets of weights those of 'model' are read, not those of 'ema'");
  EXPECT_EQ(choice_of_sets(sets_of({"model."}, one)), "");
  EXPECT_EQ(choice_of_sets(weight_sets({"backbone.fc.weight", "fc.weight"}, {named("backbone.fc.weight")})), "");
}

// A batch norm behind the last weight has as many channels as there are classes.
TEST(WeightSets, BeginAnewWithTheNormBehindTheLastWeight) {
  const auto graph = [](int classes) {
    nn::GraphBuilder builder("normed", {1, 4, 4});
    const int x = builder.add("fc0", nn::Dense{8}, {builder.add("flat", nn::Flatten{}, {0})});
    return builder.finish(builder.add("bn1", nn::BatchNorm{}, {builder.add("fc1", nn::Dense{classes}, {x})}));
  };
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.graph = graph(3);
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 1);
  checkpoint.state.statistics = random_floats(checkpoint.graph.statistic_count, 2);
  const TemporaryFolder folder;
  export_safetensors(checkpoint, folder / "x.safetensors");
  EXPECT_EQ(classes_of_weights(folder / "x.safetensors", graph(5)), 3);
  const StartingWeights start = load_weights({.file = folder / "x.safetensors", .seed = 1}, graph(5));
  EXPECT_EQ(start.fit.fitted, 2u);
  EXPECT_TRUE(start.fit.missing.empty());
  EXPECT_EQ(start.fit.new_head, "fc1.weight [5, 8]: [3, 8] in the file");
}

}  // namespace
}  // namespace dtrain::train
