#include "plan_store.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr const char* kSchema = "dtrain.plans/2";

Json object_of(const auto& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

std::string hash_of(const Json& content) { return sha256_hex(bytes_of(content.dump())); }

std::string name_of_proof(const std::string& key, const std::string& engine) {
  return fmt::format("{} by {}", key, engine);
}

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
  const bool dilated = s.dilation_h != 1 || s.dilation_w != 1;
  return fmt::format("{} {} {}x{}x{}x{} {}x{}x{} stride {}x{} padding {}x{} groups {}{}{}{}{}",
                     direction_name(work.direction),
                     rules.tf32 && work.dtype == DType::float32 ? "tf32" : dtype_name(work.dtype), s.n, s.in_h, s.in_w,
                     s.in, s.kernel_h, s.kernel_w, s.out, s.stride_h, s.stride_w, s.pad_h, s.pad_w, s.groups,
                     dilated ? fmt::format(" dilation {}x{}", s.dilation_h, s.dilation_w) : "",
                     work.normed.fused ? " of a norm's input" : "", work.moments ? " with moments" : "",
                     rules_for(work, rules).deterministic ? "" : " in any order");
}

PlanStore::PlanStore(const Path& folder, const std::string& maker) : file_(folder / file_name(maker)), maker_(maker) {
  kept_ = read().value_or(Kept{});
}

std::string PlanStore::find(const std::string& key) const {
  const auto found = kept_.engines.find(key);
  return found == kept_.engines.end() ? std::string() : found->second;
}

void PlanStore::keep(const std::string& key, const std::string& engine) {
  kept_.engines[key] = engine;
  write();
}

std::optional<bool> PlanStore::proof(const std::string& key, const std::string& engine) const {
  const auto found = kept_.proofs.find(name_of_proof(key, engine));
  return found == kept_.proofs.end() ? std::nullopt : std::optional(found->second);
}

void PlanStore::keep_proof(const std::string& key, const std::string& engine, bool same_bits) {
  kept_.proofs[name_of_proof(key, engine)] = same_bits;
  write();
}

std::string PlanStore::description() const {
  constexpr std::size_t kShown = 8;
  const auto& engines = kept_.engines;
  if (engines.empty()) return {};
  return fmt::format("{} measured plan{} ({})", engines.size(), engines.size() > 1 ? "s" : "",
                     hash_of(object_of(engines)).substr(0, kShown));
}

// What this process found counts more than what another one wrote.
void PlanStore::write() const {
  if (file_.empty()) return;
  Kept all = kept_, others = read().value_or(Kept{});
  all.engines.merge(others.engines);
  all.proofs.merge(others.proofs);
  const Json content = Json::object({{"engines", object_of(all.engines)}, {"proofs", object_of(all.proofs)}});
  make_folder(file_.parent_path());
  write_file_atomic(
      file_, Json::object({{"schema", kSchema}, {"maker", maker_}, {"sha256", hash_of(content)}, {"content", content}})
                 .dump(1));
}

std::optional<PlanStore::Kept> PlanStore::read() const {
  try {
    const Json document = Json::parse(read_file(file_), file_.string());
    const Json& content = document.at("content");
    if (document.at("schema").as_string() != kSchema || document.at("maker").as_string() != maker_ ||
        document.at("sha256").as_string() != hash_of(content)) {
      return std::nullopt;
    }
    Kept read;
    for (const auto& [key, engine] : content.at("engines").as_object()) read.engines[key] = engine.as_string();
    for (const auto& [name, same] : content.at("proofs").as_object()) read.proofs[name] = same.as_bool();
    return read;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace dtrain::backend::cuda
