#include <fmt/format.h>

#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/export.hpp>

#include "onnx_documents.hpp"
#include "onnx_graph.hpp"

namespace dtrain::train {
namespace {

using namespace onnx;

constexpr int kIrVersion = 7, kOpset = 13;                                           // of ONNX 1.8
constexpr std::uint64_t kLargestMessage = std::numeric_limits<std::int32_t>::max();  // what protobuf readers accept

ProtoMessage beginning() { return ProtoMessage().integer(ir_version, kIrVersion).text(producer_name, "dtrain"); }

ProtoMessage metadata(const char* name, const std::string& content) {
  return ProtoMessage().text(key, name).text(onnx::Entry::value, content);
}

ProtoMessage onnx_model(const Checkpoint& checkpoint, const OnnxOptions& options) {
  ProtoMessage model = beginning();
  model.text(producer_version, DTRAIN_VERSION);
  OnnxGraph writer(checkpoint, options);
  model.message(graph, writer.write());
  model.message(opset_import, ProtoMessage().integer(version, kOpset));
  const Json& preprocessing = checkpoint.job.preprocessing;
  model.message(metadata_props, metadata(kOnnxPreprocessing, preprocessing.dump()));
  const Json* classes = preprocessing.is_object() ? preprocessing.find("classes") : nullptr;
  if (classes) model.message(metadata_props, metadata(kOnnxClasses, classes->dump()));
  model.message(metadata_props, metadata(kOnnxGraph, nn::graph_to_json(writer.named_graph()).dump()));
  return model;
}

}  // namespace

std::string onnx_beginning() { return beginning().bytes(); }

std::vector<Path> export_onnx(const Checkpoint& checkpoint, const Path& file, const OnnxOptions& options) {
  if (options.softmax && nn::detection_of(checkpoint.graph)) {
    throw SettingError("softmax",
                       fmt::format("{} is a detector, whose scores are shares already", checkpoint.graph.name),
                       "leave it out");
  }
  const ProtoMessage model = onnx_model(checkpoint, options);
  if (model.size() > kLargestMessage) {
    throw Error(fmt::format("{}: the model is larger than the 2 GiB that one ONNX file can hold", file.string()),
                "export to safetensors instead");
  }
  make_folder(file.parent_path());
  AtomicFile out(file);
  model.for_each_piece([&](ByteView piece) { out.write(piece); });
  out.commit();
  return {file};
}

}  // namespace dtrain::train
