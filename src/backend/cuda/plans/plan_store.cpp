#include "plan_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/process.hpp>

namespace dtrain::backend::cuda {
namespace {

using WallClock = std::chrono::system_clock;

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

// Lets one process of this machine at a time read the file, change it and write it back. Where the file system has no
// such locks, or one is held for too long, the last one wins: what it did not see is measured or proven again.
FileDescriptor lock_of(const Path& folder) {
  using namespace std::chrono_literals;
  constexpr int kTries = 200;
  FileDescriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int k = 0; lock && k < kTries && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++k) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    std::this_thread::sleep_for(10ms);
  }
  return lock;
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
  known_ = read().value_or(Kept{});
}

std::string PlanStore::find(const std::string& key) const {
  const auto found = known_.engines.find(key);
  return found == known_.engines.end() ? std::string() : found->second;
}

void PlanStore::keep(const std::string& key, const std::string& engine) {
  known_.engines[key] = found_.engines[key] = engine;
  write();
}

std::optional<bool> PlanStore::proof(const std::string& key, const std::string& engine) const {
  const std::string name = name_of_proof(key, engine);
  if (const auto proven = known_.proofs.find(name); proven != known_.proofs.end()) return proven->second;
  const auto tried = known_.under_way.find(name);
  return tried == known_.under_way.end() || may_live(tried->second) ? std::nullopt : std::optional(false);
}

// Whether the prover may still run. A process of another machine or container cannot be looked up: there, a proof may
// be under way for as long as the slowest takes. Clocks of two machines may differ.
bool PlanStore::may_live(const Prover& prover) {
  constexpr std::chrono::minutes kLongest{15};
  if (prover.identity.starts_with(process_namespace() + " ")) {
    return process_identity(prover.process) == prover.identity;
  }
  return std::chrono::abs(WallClock::now() - prover.began) < kLongest;
}

void PlanStore::begin_proof(const std::string& key, const std::string& engine) {
  const std::int64_t process = ::getpid();
  found_.under_way[name_of_proof(key, engine)] = {process, process_identity(process), WallClock::now()};
  write();
}

void PlanStore::keep_proof(const std::string& key, const std::string& engine, bool same_bits) {
  const std::string name = name_of_proof(key, engine);
  known_.proofs[name] = found_.proofs[name] = same_bits;
  found_.under_way.erase(name);
  write();
}

void PlanStore::drop_proof(const std::string& key, const std::string& engine) {
  const std::string name = name_of_proof(key, engine);
  found_.under_way.erase(name);
  write(name);
}

std::string PlanStore::description() const {
  constexpr std::size_t kShown = 8;
  const auto& engines = known_.engines;
  if (engines.empty()) return {};
  return fmt::format("{} measured plan{} ({})", engines.size(), engines.size() > 1 ? "s" : "",
                     hash_of(object_of(engines)).substr(0, kShown));
}

// What this process found counts more than what another one wrote, and that more than what this one read of it earlier.
// `dropped`: a proof that is not under way any more.
void PlanStore::write(const std::string& dropped) const {
  if (file_.empty()) return;
  make_folder(file_.parent_path());
  const FileDescriptor lock = lock_of(file_.parent_path());
  Kept all = found_, others = read().value_or(Kept{});
  others.under_way.erase(dropped);
  all.engines.merge(others.engines);
  all.proofs.merge(others.proofs);
  all.under_way.merge(others.under_way);
  std::erase_if(all.under_way, [&](const auto& tried) { return all.proofs.contains(tried.first); });
  const Json content = json_of(all);
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
    return kept_in(content);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json PlanStore::json_of(const Kept& kept) {
  Json under_way = Json::object();
  for (const auto& [name, prover] : kept.under_way) {
    const auto began = std::chrono::floor<std::chrono::seconds>(prover.began.time_since_epoch()).count();
    under_way[name] = Json::object({{"process", prover.process}, {"identity", prover.identity}, {"began", began}});
  }
  return Json::object(
      {{"engines", object_of(kept.engines)}, {"proofs", object_of(kept.proofs)}, {"under_way", std::move(under_way)}});
}

PlanStore::Kept PlanStore::kept_in(const Json& content) {
  Kept kept;
  for (const auto& [key, engine] : content.at("engines").as_object()) kept.engines[key] = engine.as_string();
  for (const auto& [name, same] : content.at("proofs").as_object()) kept.proofs[name] = same.as_bool();
  const Json* const under_way = content.find("under_way");  // null: an earlier version wrote the file
  if (!under_way) return kept;
  for (const auto& [name, prover] : under_way->as_object()) {
    kept.under_way[name] = {prover.at("process").as_integer(), prover.at("identity").as_string(),
                            WallClock::time_point(std::chrono::seconds(prover.at("began").as_integer()))};
  }
  return kept;
}

}  // namespace dtrain::backend::cuda
