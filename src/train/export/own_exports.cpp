#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint/far_checkpoint.hpp"
#include "checkpoint/mxnet_params.hpp"
#include "checkpoint/safetensors.hpp"
#include "onnx_documents.hpp"

namespace dtrain::train {
namespace {

// Of a file behind a URL so much is read: a symbol, or the table of 40,000 tensors.
constexpr std::uint64_t kBeginning = 4u << 20;

bool is_safetensors_export(ByteView content, const Path& file) {
  return !export_metadata(content, file.string()).is_null();
}

// MXNet itself always writes node_row_ptr, the symbols of dtrain lack it.
bool is_symbol_export(std::string_view content, const Path& file) {
  const Json symbol = Json::parse(content, file.string());
  const Json* attributes = symbol.is_object() ? symbol.find("attrs") : nullptr;
  return attributes && attributes->is_object() && attributes->find("mxnet_version") && !symbol.find("node_row_ptr");
}

// The arrays do not say which program wrote them, so the symbol beside them answers for them.
bool is_params_export(ByteView content, const Path& file, const SharedStore& store) {
  const std::string name = file.string();
  const Path symbol = name.substr(0, name.rfind('-')) + "-symbol.json";
  return is_mxnet_params(content) && is_export(symbol, store);
}

bool is_export_by(ByteView content, const Path& file, const SharedStore& store) {
  const std::string_view text = text_of(content);
  if (text.starts_with(onnx_beginning())) return true;
  try {
    if (file.string().ends_with("-symbol.json")) return is_symbol_export(text, file);
    if (file.extension() == ".params") return is_params_export(content, file, store);
    return is_safetensors_export(content, file);
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

bool is_export(const Path& file, const SharedStore& store) {
  if (is_far(file)) {
    const auto found = find_far(file, store);
    return found && is_export_by(read_beginning(file, *found, kBeginning, store), file, store);
  }
  if (!std::filesystem::is_regular_file(file)) return false;
  const MappedFile content(file);
  return is_export_by(content.bytes(), file, store);
}

}  // namespace dtrain::train
