#include "plan_store.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr const char* kSchema = "dtrain.plans/1";

Json object_of(const std::map<std::string, std::string>& engines) {
  Json object = Json::object();
  for (const auto& [key, engine] : engines) object[key] = engine;
  return object;
}

std::string hash_of(const Json& engines) { return sha256_hex(bytes_of(engines.dump())); }

// What may stand in a name of a file.
std::string file_name(const std::string& maker) {
  std::string name = fmt::format("plans-{}.json", maker);
  for (char& letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '-';
    if (!plain) letter = '_';
  }
  return name;
}

}  // namespace

std::string work_key(const Convolution& work, const EngineRules& rules) {
  const ConvolutionShape& s = work.shape;
  return fmt::format("{} {} {}x{}x{}x{} {}x{}x{} stride {}x{} padding {}x{} groups {}{}{}{}",
                     direction_name(work.direction),
                     rules.tf32 && work.dtype == DType::float32 ? "tf32" : dtype_name(work.dtype), s.n, s.in_h, s.in_w,
                     s.in, s.kernel_h, s.kernel_w, s.out, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.groups,
                     work.normed.fused ? " of a norm's input" : "", work.moments ? " with moments" : "",
                     rules_for(work, rules).deterministic ? "" : " in any order");
}

PlanStore::PlanStore(const Path& folder, const std::string& maker) : file_(folder / file_name(maker)), maker_(maker) {
  engines_ = read().value_or(Engines{});
}

std::string PlanStore::find(const std::string& key) const {
  const auto found = engines_.find(key);
  return found == engines_.end() ? std::string() : found->second;
}

void PlanStore::keep(const std::string& key, const std::string& engine) {
  engines_[key] = engine;
  if (file_.empty()) return;
  Engines all = read().value_or(Engines{});
  all.merge(Engines(engines_));
  all[key] = engine;
  const Json engines = object_of(all);
  make_folder(file_.parent_path());
  write_file_atomic(
      file_, Json::object({{"schema", kSchema}, {"maker", maker_}, {"sha256", hash_of(engines)}, {"engines", engines}})
                 .dump(1));
}

std::string PlanStore::description() const {
  constexpr std::size_t kShown = 8;
  if (engines_.empty()) return {};
  return fmt::format("{} measured plan{} ({})", engines_.size(), engines_.size() > 1 ? "s" : "",
                     hash_of(object_of(engines_)).substr(0, kShown));
}

std::optional<PlanStore::Engines> PlanStore::read() const {
  try {
    const Json document = Json::parse(read_file(file_), file_.string());
    const Json& engines = document.at("engines");
    if (document.at("schema").as_string() != kSchema || document.at("maker").as_string() != maker_ ||
        document.at("sha256").as_string() != hash_of(engines)) {
      return std::nullopt;
    }
    Engines read;
    for (const auto& [key, engine] : engines.as_object()) read[key] = engine.as_string();
    return read;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace dtrain::backend::cuda
