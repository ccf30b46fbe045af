#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint/mxnet_params.hpp"
#include "checkpoint/safetensors.hpp"
#include "onnx_documents.hpp"

namespace dtrain::train {
namespace {

bool is_safetensors_export(ByteView content, const Path& file) {
  const Json metadata = safetensors_metadata(content, file.string());
  return metadata.is_object() && metadata.find("network");
}

// MXNet itself always writes node_row_ptr, the symbols of dtrain lack it.
bool is_symbol_export(std::string_view content, const Path& file) {
  const Json symbol = Json::parse(content, file.string());
  const Json* attributes = symbol.is_object() ? symbol.find("attrs") : nullptr;
  return attributes && attributes->is_object() && attributes->find("mxnet_version") && !symbol.find("node_row_ptr");
}

// The arrays do not say which program wrote them, so the symbol beside them answers for them.
bool is_params_export(ByteView content, const Path& file) {
  const std::string name = file.string();
  const Path symbol = name.substr(0, name.rfind('-')) + "-symbol.json";
  return is_mxnet_params(content) && is_export(symbol);
}

}  // namespace

bool is_export(const Path& file) {
  if (!std::filesystem::is_regular_file(file)) return false;
  const MappedFile content(file);
  const std::string_view text = text_of(content.bytes());
  if (text.starts_with(onnx_beginning())) return true;
  try {
    if (file.string().ends_with("-symbol.json")) return is_symbol_export(text, file);
    if (file.extension() == ".params") return is_params_export(content.bytes(), file);
    return is_safetensors_export(content.bytes(), file);
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace dtrain::train
