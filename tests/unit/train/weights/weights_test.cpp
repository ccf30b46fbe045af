#include <gtest/gtest.h>

#include <array>

#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "checkpoint/safetensors.hpp"
#include "data/temporary_folder.hpp"
#include "export/network_text.hpp"
#include "foreign/npz_file.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

// Files of PyTorch 2.15, of NumPy 1.24 and of torch.onnx 1.13. Element i of the tensor that begins at number n is (n +
// i) / 8.
Path golden(const char* name) { return Path(DTRAIN_TESTS_DIR) / "unit/train/golden" / name; }

std::vector<float> counted(std::initializer_list<std::pair<int, int>> tensors) {
  std::vector<float> values;
  for (const auto& [first, count] : tensors) {
    for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(first + i) / 8);
  }
  return values;
}

nn::Graph graph_with(int classes, const std::string& first = "conv0") {
  nn::GraphBuilder builder("small", {1, 4, 4});
  int x = builder.add(first, nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  return builder.finish(builder.add("fc1", nn::Dense{classes}, {x}));
}

class WeightsOfPyTorch : public ::testing::TestWithParam<const char*> {};

TEST_P(WeightsOfPyTorch, FitByTheNamesOfTheLayers) {
  const StartingWeights weights = load_weights({.file = golden(GetParam()), .whole = true}, small_graph());
  EXPECT_EQ(weights.fit.fitted, 7u);
  EXPECT_TRUE(weights.fit.unused.empty());
  EXPECT_EQ(weights.checkpoint.state.parameters, counted({{0, 18}, {20, 2}, {22, 2}, {30, 24}, {60, 3}}));
  EXPECT_EQ(weights.checkpoint.state.statistics, counted({{24, 2}, {26, 2}}));
  EXPECT_TRUE(weights.checkpoint.job.preprocessing.is_null());
}

INSTANTIATE_TEST_SUITE_P(Files, WeightsOfPyTorch,
                         ::testing::Values("state_dict.pt", "old.pt", "wrapped.pt", "arrays.npz", "compressed.npz",
                                           "model.onnx"));

TEST(Weights, OfAnotherNumberOfClassesKeepAllButTheLastLayer) {
  const Path file = golden("state_dict.pt");
  const nn::Graph graph = graph_with(5);
  EXPECT_EQ(classes_of_weights(file, graph), 3);
  const StartingWeights weights = load_weights({.file = file, .seed = 1}, graph);
  EXPECT_EQ(weights.fit.fitted, 5u);
  EXPECT_EQ(weights.fit.new_head, "fc1.weight [5, 8]: [3, 8] in the file");
  EXPECT_EQ(weights.checkpoint.state.parameters.back(), 0.0f);
  EXPECT_TRUE(weights.fit.missing.empty());
}

TEST(Weights, BeginTheLastLayerAnewOnRequest) {
  const StartingWeights weights =
      load_weights({.file = golden("state_dict.pt"), .new_head = "other classes", .seed = 1}, small_graph());
  EXPECT_EQ(weights.fit.new_head, "other classes");
  EXPECT_EQ(weights.checkpoint.state.parameters.back(), 0.0f);
}

TEST(Weights, OfAnotherNetworkAreRefusedWithWhatIsMissing) {
  expect_error<DataError>(
      [] { load_weights({.file = golden("state_dict.pt")}, graph_with(3, "conv1")); },
      "6 of the 7 tensors of small are in it; not conv1.weight [2, 1, 3, 3]: not in the file, the nearest is "
      "conv0.weight [2, 1, 3, 3]");
  expect_error<DataError>([] { load_weights({.file = golden("state_dict.pt"), .whole = true}, graph_with(5)); },
                          "fc1.weight [5, 8]: [3, 8] in the file");
}

TEST(Weights, ThatWouldRunCodeAreRefusedByItsName) {
  expect_error<DataError>([] { load_weights({.file = golden("code.pt")}, small_graph()); },
                          "it would run posix.system");
}

TEST(Weights, CutShortAreDamaged) {
  const TemporaryFolder folder;
  for (const char* name : {"state_dict.pt", "old.pt", "arrays.npz", "compressed.npz", "model.onnx"}) {
    const std::string whole = read_file(golden(name));
    const Path cut = folder / ("cut" + Path(name).extension().string());
    for (std::size_t length = 0; length < whole.size(); length += 97) {
      write_file_atomic(cut, whole.substr(0, length));
      EXPECT_THROW(load_weights({.file = cut}, small_graph()), DataError) << name << " " << length;
    }
  }
}

TEST(Weights, OfAChangedByteAreDamaged) {
  const TemporaryFolder folder;
  for (const char* name : {"state_dict.pt", "arrays.npz"}) {
    std::string content = read_file(golden(name));
    const std::vector<float> first = counted({{0, 18}});
    const std::size_t at = content.find(text_of(std::as_bytes(std::span(first))));
    ASSERT_NE(at, content.npos) << name;
    content[at] = '\1';
    write_file_atomic(folder / name, content);
    expect_error<DataError>([&] { load_weights({.file = folder / name}, small_graph()); },
                            "its bytes differ from their checksum");
  }
}

TEST(Weights, OfMxnetAreArraysByName) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  export_mxnet(checkpoint, folder / "m", 1);
  const StartingWeights weights = load_weights({.file = folder / "m-0001.params", .whole = true}, small_graph());
  EXPECT_EQ(weights.checkpoint.state.statistics, checkpoint.state.statistics);
  EXPECT_TRUE(weights.fit.unused.empty());
}

TEST(Weights, OfAnotherProgramMayHaveTheWordsOfAnExport) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "x.safetensors");
  constexpr std::array<float, 1> values = {1.0f};
  const std::array<NamedTensor, 1> tensors = {{{"a", {1}, values}}};
  const Json words = Json::object({{"preprocessing", "imagenet"}, {kAnchorSize, "small"}, {kNetworkOptions, "none"}});
  write_safetensors(file, safetensors_header(tensors, words), tensors);
  file.commit();
  EXPECT_TRUE(preprocessing_of_weights(folder / "x.safetensors").is_null());
  EXPECT_EQ(anchor_size_of_weights(folder / "x.safetensors"), 0);
}

TEST(Weights, OfOneNameAreOneTensor) {
  const TemporaryFolder folder;
  const std::string first = "bn0.weight", second = "fc1.weight";
  std::string content = read_file(golden("arrays.npz"));
  for (std::size_t at = content.find(second); at != content.npos; at = content.find(second))
    content.replace(at, second.size(), first);
  write_file_atomic(folder / "x.npz", content);
  expect_error<DataError>([&] { load_weights({.file = folder / "x.npz"}, small_graph()); },
                          "x.npz: two tensors have the name 'bn0.weight'");
}

TEST(Weights, OfTensorPackHaveTorchvisionsNames) {
  for (const auto& [theirs, ours] :
       {std::pair{"conv0/W", "conv1.weight"},
        {"conv0/bn/gamma", "bn1.weight"},
        {"group0/block0/conv2/bn/mean/EMA", "layer1.0.bn2.running_mean"},
        {"group3/block1/convshortcut/W", "layer4.1.downsample.0.weight"},
        {"group3/block1/convshortcut/bn/variance/EMA", "layer4.1.downsample.1.running_var"},
        {"linear/b", "fc.bias"},
        {"fpn/lateral_1x1_c2/W", "backbone.fpn.inner_blocks.0.0.weight"},
        {"fpn/posthoc_3x3_p5/b", "backbone.fpn.layer_blocks.3.0.bias"},
        {"rpn/conv0/W", "rpn.head.conv.0.0.weight"},
        {"fastrcnn/outputs/box/W", "roi_heads.box_predictor.bbox_pred.weight"},
        {"maskrcnn/fcn3/b", "roi_heads.mask_head.3.0.bias"},
        {"maskrcnn/conv/W", "roi_heads.mask_predictor.mask_fcn_logits.weight"},
        {"maskrcnn/gn0/gamma", "maskrcnn/gn0/gamma"},
        {"fpn/lateral_1x1_c1/W", "fpn/lateral_1x1_c1/W"},
        {"rpn/conv0/Momentum", "rpn/conv0/Momentum"},
        {"global_step", "global_step"},
        {"group0/block0/preact/bn/beta", "group0/block0/preact/bn/beta"}}) {
    EXPECT_EQ(torch_name_of_tensorpack(theirs), ours);
  }
}

TEST(Weights, OfAnOnnxModelOfDtrainAreTheWholeCheckpoint) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  export_onnx(checkpoint, folder / "x.onnx");
  const Checkpoint read = import_onnx(folder / "x.onnx");
  EXPECT_EQ(weights_sha256(read), weights_sha256(checkpoint));
  EXPECT_EQ(read.state.statistics, checkpoint.state.statistics);
  EXPECT_EQ(read.job.preprocessing, checkpoint.job.preprocessing);
  const Checkpoint other = import_onnx(golden("model.onnx"));  // of another program: its operators are the network
  EXPECT_EQ(other.state.parameters, counted({{0, 18}, {20, 2}, {22, 2}, {30, 24}, {60, 3}}));
  EXPECT_TRUE(other.job.preprocessing.is_null());
}

TEST(Weights, NameTheirNetwork) {
  const TemporaryFolder folder;
  for (const auto& [name, layers] : {std::pair{"resnet34", 0}, {"mobilenet_v2", 0}, {"resnet-v1", 20}}) {
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.graph = nn::build_network({.name = name, .num_layers = layers, .image = {3, 32, 32}, .classes = 7});
    checkpoint.state = {};
    checkpoint.state.parameters.resize(static_cast<std::size_t>(checkpoint.graph.parameter_count));
    checkpoint.state.statistics.resize(static_cast<std::size_t>(checkpoint.graph.statistic_count));
    const bool of_torch = layers == 0;
    if (of_torch) {
      export_safetensors(checkpoint, folder / "x.safetensors");
    } else {
      checkpoint.state.optimizer.resize(checkpoint.state.parameters.size());
      save_checkpoint({folder / "x", 1, 0}, checkpoint);
    }
    const auto known = network_of_weights(folder / (of_torch ? "x.safetensors" : "x-0001.safetensors"));
    ASSERT_TRUE(known.has_value()) << name;
    EXPECT_EQ(known->name, name);
    EXPECT_EQ(known->num_layers, layers);
  }
  EXPECT_FALSE(network_of_weights(golden("state_dict.pt")).has_value());
}

TEST(Weights, OfAnExportNameTheNetworkWhoseTensorsOthersDoNotHave) {
  const TemporaryFolder folder;
  for (const nn::NetworkOptions& network :
       {nn::NetworkOptions{.name = "resnet", .num_layers = 20, .image = {3, 32, 32}, .classes = 7, .width = 4},
        {.name = "mlp", .image = {1, 8, 8}, .classes = 3}}) {
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.graph = nn::build_network(network);
    checkpoint.state = {};
    checkpoint.state.parameters.resize(static_cast<std::size_t>(checkpoint.graph.parameter_count));
    checkpoint.state.statistics.resize(static_cast<std::size_t>(checkpoint.graph.statistic_count));
    export_safetensors(checkpoint, folder / "x.safetensors");
    const auto known = network_of_weights(folder / "x.safetensors");
    ASSERT_TRUE(known.has_value()) << network.name;
    EXPECT_EQ(known->name, network.name);
    EXPECT_EQ(known->num_layers, network.num_layers);
    EXPECT_EQ(known->width, network.width);
  }
  export_safetensors(small_checkpoint(), folder / "own.safetensors");  // a network without a name
  EXPECT_FALSE(network_of_weights(folder / "own.safetensors").has_value());
}

TEST(NetworkText, OfANewerNetworkIsNotKnownAndABrokenOneIsRefused) {
  std::string text = network_text({.name = "vgg", .num_layers = 16, .batch_norm = true});
  const auto read = network_from_text(text, "x");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->num_layers, 16);
  EXPECT_TRUE(read->batch_norm);
  EXPECT_FALSE(network_from_text(network_text({.name = "resnet-of-tomorrow"}), "x").has_value());
  text.replace(text.find("16"), 2, "-1");
  expect_error<DataError>([&] { network_from_text(text, "x.safetensors"); }, "x.safetensors: network_options: -1");
  expect_error<DataError>([] { network_from_text("{}", "x.safetensors"); }, "x.safetensors: network_options: ");
}

TEST(Weights, NameTheDetectorAndItsBackbone) {
  const TemporaryFolder folder;
  for (const std::string& name : nn::detector_names()) {
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.graph = nn::build_network({.name = name, .image = {3, 64, 64}, .classes = 3, .backbone = "resnet-18"});
    checkpoint.state = {};
    checkpoint.state.parameters.resize(static_cast<std::size_t>(checkpoint.graph.parameter_count));
    checkpoint.state.statistics.resize(static_cast<std::size_t>(checkpoint.graph.statistic_count));
    export_safetensors(checkpoint, folder / "x.safetensors");
    const auto known = network_of_weights(folder / "x.safetensors");
    ASSERT_TRUE(known.has_value()) << name;
    EXPECT_EQ(known->name, name);
    EXPECT_EQ(known->backbone, "resnet-18");
  }
}

TEST(Weights, OfDtrainBringTheirPreprocessing) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  export_safetensors(checkpoint, folder / "x.safetensors");
  save_checkpoint({folder / "m", 1, 0}, checkpoint);
  for (const char* name : {"x.safetensors", "m-0001.safetensors"}) {
    const StartingWeights weights = load_weights({.file = folder / name, .whole = true}, small_graph());
    EXPECT_EQ(weights.checkpoint.state.parameters, checkpoint.state.parameters) << name;
    EXPECT_EQ(weights.checkpoint.state.statistics, checkpoint.state.statistics) << name;
    EXPECT_EQ(preprocessing_of_weights(folder / name), checkpoint.job.preprocessing) << name;
  }
}

TEST(Weights, OfADamagedCheckpointAreRefused) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  const Path file = save_checkpoint({folder / "m", 1, 0}, checkpoint);
  const std::string whole = read_file(file);
  const auto read_with_changed = [&](const std::vector<float>& values) {
    std::string content = whole;
    const std::size_t at = content.find(text_of(std::as_bytes(std::span(values).first(2))));
    content.at(at) = static_cast<char>(content.at(at) ^ 1);
    write_file_atomic(file, content);
    load_weights({.file = file, .whole = true}, small_graph());
  };
  expect_error<DataError>([&] { read_with_changed(checkpoint.state.parameters); },
                          "m-0001.safetensors: damaged: tensor 'conv0_weight' was changed");
  EXPECT_NO_THROW(read_with_changed(checkpoint.state.optimizer)) << "which is no weight";
  std::string renamed = whole;
  renamed.replace(renamed.find("bn0_gamma"), 9, "bn0_gamme");
  write_file_atomic(file, renamed);
  expect_error<DataError>([&] { preprocessing_of_weights(file); }, "damaged: its table of tensors was changed");
}

TEST(Weights, OfACheckpointHaveItsNames) {
  const TemporaryFolder folder;
  const Path file = save_checkpoint({folder / "p", 1, 0}, small_checkpoint());
  std::filesystem::create_directory(folder / "p");
  for (const char* name : {"p", "p-0001", "p-0001.json", "p-0001.safetensors", "p-0001.params"})
    EXPECT_EQ(file_of_weights(folder / name), file) << name;
}

TEST(Weights, OfDtrainHaveGammasThatAreHeldAtOneAndNotNeeded) {
  nn::GraphBuilder builder("held", {1, 4, 4});
  const int x = builder.add("bn_data", nn::BatchNorm{.fix_gamma = true}, {0});
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.graph = builder.finish(builder.add("fc1", nn::Dense{3}, {x}));
  checkpoint.state.parameters.assign(static_cast<std::size_t>(checkpoint.graph.parameter_count), 1.0f);
  checkpoint.state.statistics.assign(static_cast<std::size_t>(checkpoint.graph.statistic_count), 1.0f);
  checkpoint.state.optimizer = checkpoint.state.parameters;
  const TemporaryFolder folder;
  save_checkpoint({folder / "m", 1, 0}, checkpoint);
  const auto fit_of_saved = [&] {
    return load_weights({.file = folder / "m-0001.safetensors", .whole = true}, checkpoint.graph).fit;
  };
  EXPECT_TRUE(fit_of_saved().unused.empty());
  checkpoint.state.parameters.assign(checkpoint.state.parameters.size(), 0.5f);
  save_checkpoint({folder / "m", 1, 0}, checkpoint);
  EXPECT_EQ(fit_of_saved().unused, std::vector<std::string>{"bn_data_gamma [1]"});
}

// The average is what evaluations of the training saw.
TEST(Weights, OfDtrainAreTheAverageWhereThereIsOne) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.state.average = random_floats(checkpoint.graph.parameter_count + checkpoint.graph.statistic_count, 300);
  save_checkpoint({folder / "m", 1, 0}, checkpoint);
  const StartingWeights weights = load_weights({.file = folder / "m-0001.safetensors", .whole = true}, small_graph());
  EXPECT_TRUE(weights.fit.unused.empty());
  use_average(checkpoint);
  EXPECT_EQ(weights.checkpoint.state.parameters, checkpoint.state.parameters);
  EXPECT_EQ(weights.checkpoint.state.statistics, checkpoint.state.statistics);
}

TEST(Weights, OfDensenetMayHaveTheNamesOfOlderModules) {
  const TemporaryFolder folder;
  const auto dense = [](const std::string& dot) {
    nn::GraphBuilder builder("dense", {1, 4, 4});
    const std::string layer = "features.denselayer1.";
    int x = builder.add(layer + "norm" + dot + "1", nn::BatchNorm{}, {0});
    x = builder.add(layer + "conv" + dot + "2", nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3}, {x});
    return builder.finish(builder.add("fc", nn::Dense{3}, {x}));
  };
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.graph = dense(".");
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 1);
  checkpoint.state.statistics = random_floats(checkpoint.graph.statistic_count, 2);
  export_safetensors(checkpoint, folder / "x.safetensors");
  const StartingWeights weights = load_weights({.file = folder / "x.safetensors", .whole = true}, dense(""));
  EXPECT_EQ(weights.checkpoint.state.parameters, checkpoint.state.parameters);
}

// A network of one convolution of single pixels, or of the dense layer that has the same weights.
nn::Graph pointwise(const std::string& name, bool as_dense) {
  nn::GraphBuilder builder("pointwise", {3, 1, 1});
  const nn::Layer layer = as_dense ? nn::Layer(nn::Dense{4}) : nn::Layer(nn::Convolution{.out = 4, .bias = true});
  return builder.finish(builder.add("fc", nn::Dense{3}, {builder.add(name, layer, {0})}));
}

TEST(Weights, OfLinearLayersFitConvolutionsOfSinglePixelsAndOlderNamesOfTransformers) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.graph = pointwise("encoder_layer_0.mlp.linear_2", true);
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 1);
  checkpoint.state.statistics.clear();
  export_safetensors(checkpoint, folder / "x.safetensors");
  const StartingWeights weights =
      load_weights({.file = folder / "x.safetensors", .whole = true}, pointwise("encoder_layer_0.mlp.3", false));
  EXPECT_EQ(weights.checkpoint.state.parameters, checkpoint.state.parameters);
}

nn::Graph convolutions(const std::vector<std::string>& names) {
  nn::GraphBuilder builder("detector", {1, 4, 4});
  int x = 0;
  for (const std::string& name : names) x = builder.add(name, nn::Convolution{.out = 2, .bias = true}, {x});
  return builder.finish(builder.add("fc", nn::Dense{3}, {x}));
}

// torchvision reads its older files by the same names (FeaturePyramidNetwork, RPNHead, RetinaNetHead, MaskRCNNHeads).
TEST(Weights, OfDetectorsMayHaveTheNamesOfOlderModules) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.graph =
      convolutions({"backbone.fpn.inner_blocks.0", "backbone.fpn.layer_blocks.3", "rpn.head.conv",
                    "roi_heads.mask_head.mask_fcn1", "roi_heads.mask_head.mask_fcn4", "head.classification_head.conv.0",
                    "head.regression_head.conv.2", "head.classification_head.conv.6"});
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 1);
  checkpoint.state.statistics.clear();
  const nn::Graph since =
      convolutions({"backbone.fpn.inner_blocks.0.0", "backbone.fpn.layer_blocks.3.0", "rpn.head.conv.0.0",
                    "roi_heads.mask_head.0.0", "roi_heads.mask_head.3.0", "head.classification_head.conv.0.0",
                    "head.regression_head.conv.1.0", "head.classification_head.conv.3.0"});
  for (const nn::Graph& graph : {checkpoint.graph, since}) {
    checkpoint.graph = graph;
    export_safetensors(checkpoint, folder / "x.safetensors");
    const StartingWeights weights = load_weights({.file = folder / "x.safetensors", .whole = true}, since);
    EXPECT_EQ(weights.checkpoint.state.parameters, checkpoint.state.parameters);
  }
}

TEST(Weights, OfNoKnownFormatAreRefused) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "x.pt", "hello, world");
  expect_error<DataError>([&] { load_weights({.file = folder / "x.pt"}, small_graph()); },
                          "is no file of weights that dtrain knows");
}

}  // namespace
}  // namespace dtrain::train
