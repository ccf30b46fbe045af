#include "option_texts.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kSchema = "dtrain.job/1";

}  // namespace

Json begin_document(const std::string& copied_to) {
  return Json::object({{"schema", kSchema},
                       {"version", DTRAIN_VERSION},
                       {"folder", copied_to.empty() ? std::filesystem::current_path().string() : copied_to}});
}

void enter_document(const Json& document) {
  const std::string& version = document.at("version").as_string();
  if (document.at("schema").as_string() != kSchema || version != DTRAIN_VERSION) {
    throw DataError(fmt::format("the job was started by dtrain {}, but this is dtrain {}", version, DTRAIN_VERSION),
                    "install the same dtrain on all hosts");
  }
  std::error_code no_such_folder;
  std::filesystem::current_path(document.at("folder").as_string(), no_such_folder);
}

}  // namespace dtrain::config
