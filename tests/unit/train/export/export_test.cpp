#include <gtest/gtest.h>

#include <set>

#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "checkpoint/mxnet_params.hpp"
#include "checkpoint/safetensors.hpp"
#include "common/small_files.hpp"
#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"
#include "weights/onnx_file.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

TEST(ExportSafetensors, HoldsWeightsAndStatisticsOnly) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  EXPECT_EQ(export_safetensors(checkpoint, folder / "out/x.safetensors"),
            std::vector<Path>{folder / "out/x.safetensors"});
  const SafetensorsFile file(folder / "out/x.safetensors");
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file.entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv0.weight", "bn0.weight", "bn0.bias", "fc1.weight", "fc1.bias",
                                             "bn0.running_mean", "bn0.running_var"}));
  EXPECT_EQ(text_of(file.bytes(file.entries()[0])),
            text_of(std::as_bytes(std::span(checkpoint.state.parameters).first(18))));
}

TEST(Exports, AreKnownByTheirContent) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  export_safetensors(checkpoint, folder / "x.safetensors");
  export_onnx(checkpoint, folder / "x.onnx");
  const auto mxnet = export_mxnet(checkpoint, folder / "x", 2);
  EXPECT_EQ(mxnet, mxnet_export_files(folder / "x", 2));
  for (const Path& file : {folder / "x.safetensors", folder / "x.onnx", mxnet[0], mxnet[1]})
    EXPECT_TRUE(is_export(file)) << file;
}

TEST(Exports, AreNotFilesOfOthers) {
  const TemporaryFolder folder;
  export_mxnet(small_checkpoint(), folder / "x", 2);
  std::filesystem::rename(folder / "x-0002.params", folder / "foreign-0002.params");
  Json symbol = Json::parse(read_file(folder / "x-symbol.json"), "x");
  symbol["node_row_ptr"] = Json::array();
  write_file_atomic(folder / "x-symbol.json", symbol.dump());
  AtomicFile foreign(folder / "foreign.safetensors");
  write_safetensors(foreign, safetensors_header({}, Json::object({{"format", "pt"}})), {});
  foreign.commit();
  for (const char* name : {"t.txt", "t.onnx", "t-symbol.json", "t.params"}) write_file_atomic(folder / name, "notes");
  write_file_atomic(folder / "empty", "");
  for (const char* name : {"foreign-0002.params", "x-symbol.json", "foreign.safetensors", "t.txt", "t.onnx",
                           "t-symbol.json", "t.params", "empty", "none"})
    EXPECT_FALSE(is_export(folder / name)) << name;
}

// The names of an imported network may be those that the exporter makes up.
TEST(ExportOnnx, GivesEachValueANameOfItsOwn) {
  const TemporaryFolder folder;
  const auto checkpoint_of = [](const char* input, const char* first) {
    nn::GraphBuilder builder("n", {1, 4, 4}, input);
    int x = builder.add(first, nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3}, {0});
    x = builder.add("softmax0", nn::Activation{nn::ActivationKind::relu}, {x});
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.graph = builder.finish(builder.add("fc1", nn::Dense{3}, {x}));
    checkpoint.graph.parameters.front().name = "fc1_output";
    checkpoint.graph.parameters.back().name = "logits";
    checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 1);
    checkpoint.state.statistics.clear();
    checkpoint.job.preprocessing = Json::object({{"rgb_mean", Json::array({1})}, {"rgb_std", Json::array({2})}});
    return checkpoint;
  };
  for (const char* const input :
       {"data", "pixels", "rgb_mean", "pixels_float", "probabilities", "logits", "c_output"}) {
    for (const OnnxOptions& options : {OnnxOptions{}, OnnxOptions{.preprocessing = true, .softmax = true}}) {
      const Checkpoint checkpoint = checkpoint_of(input, "c");
      export_onnx(checkpoint, folder / "x.onnx", options);
      const std::string content = read_file(folder / "x.onnx");
      const OnnxFile file = parse_onnx_file(bytes_of(content), "x.onnx");
      std::vector<std::string> made;
      std::set<std::string> known;
      for (const OnnxInput& each : file.inputs) made.push_back(each.name);
      for (const ForeignTensor& each : file.tensors) made.push_back(each.name);
      for (const auto& [name, integers] : file.integers) made.push_back(name);
      for (const std::string& name : made) EXPECT_TRUE(known.insert(name).second) << input << " " << name;
      for (const OnnxNode& node : file.nodes) {
        for (const std::string& name : node.inputs) EXPECT_TRUE(known.contains(name)) << input << " " << name;
        for (const std::string& name : node.outputs) EXPECT_TRUE(known.insert(name).second) << input << " " << name;
      }
      EXPECT_EQ(file.outputs, std::vector<std::string>{options.softmax ? "probabilities" : "logits"});
      EXPECT_TRUE(known.contains(file.outputs.front()));
      EXPECT_EQ(import_onnx(folder / "x.onnx").state.parameters, checkpoint.state.parameters) << input;
    }
  }
}

TEST(ExportOnnx, SaysHowPixelsAreNamedWhereTheyAreNot) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.job.preprocessing = {};
  expect_error<SettingError>([&] { export_onnx(checkpoint, folder / "x.onnx", {.preprocessing = true}); },
                             "`dtrain import` makes one of an ONNX model");
}

TEST(ExportMxnet, NamesArgumentsAndAuxiliaryStates) {
  const TemporaryFolder folder;
  const auto files = export_mxnet(small_checkpoint(), folder / "x", 12);
  EXPECT_EQ(files, (std::vector<Path>{folder / "x-symbol.json", folder / "x-0012.params"}));
  const std::string params = read_file(files[1]);
  std::string names;
  for (const MxnetArray& array : parse_mxnet_params(bytes_of(params), "x")) names += array.name + " ";
  EXPECT_EQ(names,
            "arg:conv0_weight arg:bn0_gamma arg:bn0_beta arg:fc1_weight arg:fc1_bias aux:bn0_moving_mean "
            "aux:bn0_moving_var ");
}

TEST(ExportMxnet, KnowsTheFilesThatWouldLoseTheirSymbol) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = small_checkpoint();
  Checkpoint other = checkpoint;
  nn::GraphBuilder builder("other", {1, 4, 4});
  other.graph = builder.finish(builder.add("fc1", nn::Dense{3}, {0}));
  EXPECT_EQ(params_of_other_network(checkpoint, folder / "x", 1), std::nullopt);
  export_mxnet(checkpoint, folder / "x", 1);
  export_mxnet(checkpoint, folder / "x", 2);
  EXPECT_EQ(params_of_other_network(checkpoint, folder / "x", 3), std::nullopt);
  EXPECT_EQ(params_of_other_network(other, folder / "x", 3), folder / "x-0002.params");
  EXPECT_EQ(params_of_other_network(other, folder / "x", 2), folder / "x-0001.params");
  std::filesystem::remove(folder / "x-0001.params");
  EXPECT_EQ(params_of_other_network(other, folder / "x", 2), std::nullopt) << "it is replaced itself";
}

TEST(ExportMxnet, ComesBackAsTheSameModel) {
  const TemporaryFolder folder;
  const Checkpoint saved = small_checkpoint();
  export_mxnet(saved, folder / "x", 3);
  const Checkpoint read = load_checkpoint(folder / "x", 3, nn::Shape{1, 4, 4}, 3);
  EXPECT_EQ(read.state.parameters, saved.state.parameters);
  EXPECT_EQ(read.state.statistics, saved.state.statistics);
  EXPECT_TRUE(read.state.optimizer.empty());
  EXPECT_EQ(read.cursor.epoch, 3u);
  EXPECT_EQ(weights_sha256(read), weights_sha256(saved));
}

// Writes small_graph's symbol with these arrays in place of the right ones.
void expect_import_refused(const std::function<void(std::vector<NamedTensor>&)>& change, std::string_view why) {
  const TemporaryFolder folder;
  export_mxnet(small_checkpoint(), folder / "x", 1);
  const std::string good = read_file(folder / "x-0001.params");
  const std::vector<MxnetArray> arrays = parse_mxnet_params(bytes_of(good), "x");
  std::vector<NamedTensor> tensors;
  for (const MxnetArray& array : arrays) tensors.push_back({array.name, array.shape, array.values});
  change(tensors);
  AtomicFile file(folder / "x-0001.params");
  write_mxnet_params(file, tensors);
  file.commit();
  expect_error([&] { import_mxnet(folder / "x", 1, nn::Shape{1, 4, 4}, 3); }, why);
}

TEST(ImportMxnet, NamesTheArrayThatDoesNotFit) {
  expect_import_refused([](auto& t) { t.pop_back(); }, "the array 'aux:bn0_moving_var' of the network is missing");
  expect_import_refused(
      [](auto& t) {
        t.push_back({"arg:x", {2}, t[1].values});
      },
      "the network has no place for 'arg:x'");
  expect_import_refused(
      [](auto& t) {
        t[1].shape = {1, 2};
      },
      "'arg:bn0_gamma' has the shape [1, 2], the network needs [2]");
}

TEST(ImportMxnet, ComparesShapesBeforeItMakesRoomForWhatASymbolAsksFor) {
  const TemporaryFolder folder;
  export_mxnet(small_checkpoint(), folder / "x", 1);
  std::string symbol = read_file(folder / "x-symbol.json");
  for (const char* size : {R"("num_filter": ")", R"("num_hidden": ")"}) {
    const std::size_t place = symbol.find(size);
    ASSERT_NE(place, std::string::npos) << symbol;
    symbol.replace(place + std::string_view(size).size(), 1, "100000");
  }
  write_file_atomic(folder / "x-symbol.json", symbol);
  expect_error([&] { import_mxnet(folder / "x", 1, nn::Shape{1, 4, 4}, 100'000); }, "has the shape [2, ");
}

TEST(ImportMxnet, AFixedGammaIsOneWhateverTheFileSays) {
  const TemporaryFolder folder;
  Checkpoint saved = small_checkpoint();
  nn::GraphBuilder builder("fixed", {1, 4, 4});
  const int x = builder.add("bn", nn::BatchNorm{.fix_gamma = true}, {0});
  saved.graph = builder.finish(builder.add("fc", nn::Dense{3}, {x}));
  saved.state.parameters = random_floats(saved.graph.parameter_count, 0);
  saved.state.statistics = random_floats(saved.graph.statistic_count, 1);
  export_mxnet(saved, folder / "x", 1);
  EXPECT_EQ(import_mxnet(folder / "x", 1, nn::Shape{1, 4, 4}, 3).state.parameters[0], 1.0f);
}

TEST(ExportOnnx, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  nn::GraphBuilder builder("tiny", {2, 1, 1}, "data");
  checkpoint.graph = builder.finish(builder.add("fc", nn::Dense{2, false}, {0}));
  checkpoint.state.parameters = {1, 2, 3, 4};
  export_onnx(checkpoint, folder / "x.onnx");
  using namespace std::string_literals;
  const std::string version = DTRAIN_VERSION;
  const std::string golden =
      "\010\007\022\006dtrain\032"s + static_cast<char>(version.size()) + version +
      ":\363\001\022\004tiny\012#\012\004data\022\007fc_flat\032\011Flatten_0\042\007Flatten*#"s +
      "\010\002\010\002\020\001B\011fc_weightJ\020\000\000\200\077\000\000\000@\000\000@@\000\000\200@\012<\012\007fc_flat\012\011"s +
      "fc_weight\022\011fc_output\032\006Gemm_1\042\004Gemm*\015\012\006transB\030\001\240\001"s +
      "\002\012'\012\011fc_output\022\006logits\032\011Flatten_2\042\007FlattenZ\037\012\004da"s +
      "ta\022\027\012\025\010\001\022\021\012\003\022\001n\012\002\010\002\012\002\010\001\012\002\010\001b\031\012\006logits\022\017\012\015\010\001\022\011\012\003\022"s +
      "\001n\012\002\010\002B\002\020\015r\025\012\015preprocessing\022\004null"s;
  // The network itself, with lengths of two bytes.
  const auto length = [](std::size_t n) {
    return std::string{static_cast<char>(n % 128 + 128), static_cast<char>(n / 128)};
  };
  const std::string network = nn::graph_to_json(checkpoint.graph).dump();
  const std::string entry = "\012\014dtrain_graph\022"s + length(network.size()) + network;
  EXPECT_EQ(read_file(folder / "x.onnx"), golden + "r" + length(entry.size()) + entry);
}

// A detector whose logits come from a window of `kernel` pixels of two levels that lie side by side.
Checkpoint detector_of(int kernel) {
  nn::GraphBuilder builder("tiny", {3, 64, 64});
  const int first = builder.add("first", nn::Convolution{.out = 4, .stride_h = 8, .stride_w = 8}, {0});
  const int second = builder.add("second", nn::Convolution{.out = 4, .stride_h = 2, .stride_w = 2}, {first});
  const int levels = builder.add("levels", nn::Pyramid{}, {first, second});
  const int pad = kernel / 2;
  const int classes = builder.add(
      "classes",
      nn::Convolution{
          .out = 2 * nn::DetectionLoss::kAnchors, .kernel_h = kernel, .kernel_w = kernel, .pad_h = pad, .pad_w = pad},
      {levels});
  const int boxes = builder.add("boxes", nn::Convolution{.out = 4 * nn::DetectionLoss::kAnchors}, {levels});
  Checkpoint checkpoint;
  checkpoint.graph = builder.finish(
      {classes, boxes},
      nn::DetectionLoss{.found = {.classes = 2, .image_height = 64, .image_width = 64}, .levels = {2, 8, 8}});
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, 0);
  return checkpoint;
}

TEST(ExportOnnx, RefusesALayerThatSeesOfTwoLevels) {
  const TemporaryFolder folder;
  export_onnx(detector_of(3), folder / "x.onnx");
  EXPECT_TRUE(exists(folder / "x.onnx"));
  expect_error<UsageError>([&] { export_onnx(detector_of(5), folder / "x.onnx"); },
                           "classes: ONNX has no such layer for the levels of a pyramid");
}

TEST(ExportOnnx, GivesProbabilitiesAsTheLossTakesThem) {
  const TemporaryFolder folder;
  for (const nn::LossKind kind : {nn::LossKind::softmax, nn::LossKind::sigmoid}) {
    Checkpoint checkpoint = small_checkpoint();
    nn::set_loss(checkpoint.graph, {.kind = kind});
    export_onnx(checkpoint, folder / "x.onnx", {.softmax = true});
    const std::string content = read_file(folder / "x.onnx");
    const OnnxFile file = parse_onnx_file(bytes_of(content), "x.onnx");
    EXPECT_EQ(file.nodes.back().op, kind == nn::LossKind::softmax ? "Softmax" : "Sigmoid");
    EXPECT_EQ(file.nodes.back().outputs, std::vector<std::string>{"probabilities"});
  }
}

TEST(ExportOnnx, OfADetectorHasNoSoftmax) {
  const TemporaryFolder folder;
  expect_error<UsageError>([&] { export_onnx(detector_of(1), folder / "x.onnx", {.softmax = true}); },
                           "setting 'softmax'");
}

TEST(ExportOnnx, OfADetectorIsANetworkOfItsClassesAlone) {
  const TemporaryFolder folder;
  const Checkpoint detector = detector_of(1);
  export_onnx(detector, folder / "x.onnx");
  EXPECT_EQ(nn::graph_to_json(network_of_onnx_model(folder / "x.onnx", {}, 2)), nn::graph_to_json(detector.graph));
  expect_error<DataError>([&] { network_of_onnx_model(folder / "x.onnx", {}, 3); },
                          "finds objects of 2 classes, not 3");
}

TEST(Exports, LeaveTheOldFileWhenTheNewOneFails) {
  const TemporaryFolder folder;
  for (const char* name : {"x.onnx", "x.safetensors", "x-symbol.json", "x-0001.params"}) {
    write_file_atomic(folder / name, "old");
  }
  const SmallFiles disk;
  disk.limit(1);
  EXPECT_THROW(export_onnx(small_checkpoint(), folder / "x.onnx"), Error);
  EXPECT_THROW(export_safetensors(small_checkpoint(), folder / "x.safetensors"), Error);
  EXPECT_THROW(export_mxnet(small_checkpoint(), folder / "x", 1), Error);
  disk.lift();
  for (const char* name : {"x.onnx", "x.safetensors", "x-symbol.json", "x-0001.params"}) {
    EXPECT_EQ(read_file(folder / name), "old");
  }
}

}  // namespace
}  // namespace dtrain::train
