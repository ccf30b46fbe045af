// Which engine was measured to be the fastest for which work, and which engines were seen to give the same bits: chosen
// once, kept on disk, the same in every run until the user measures again. One file for each maker. Values; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

#include "../engine_rules.hpp"

namespace dtrain::backend::cuda {

// What is computed by which rules, whatever memory it is in: "forward bfloat16 256x56x56x64 3x3x64 stride 1x1 padding
// 1x1 groups 1".
std::string work_key(const Convolution& work, const EngineRules& rules);

class PlanStore {
 public:
  // Nothing is known, and nothing is kept.
  PlanStore() = default;
  // What stands in the folder's file for `maker` (see description.hpp): nothing where there is none, or it was damaged.
  PlanStore(const Path& folder, const std::string& maker);

  std::string find(const std::string& key) const;  // the engine's name; empty: never measured
  // Kept at once, together with what other processes kept meanwhile. Throws Error where the folder cannot be written.
  void keep(const std::string& key, const std::string& engine);
  // Whether the engine gives the same bits for that work; nullopt: it was never tried (see needs_proof()), or another
  // process is trying it. An engine whose process ended in the middle of its proof did not give them.
  std::optional<bool> proof(const std::string& key, const std::string& engine) const;
  void begin_proof(const std::string& key, const std::string& engine);                 // likewise at once
  void keep_proof(const std::string& key, const std::string& engine, bool same_bits);  // likewise
  void drop_proof(const std::string& key, const std::string& engine);                  // it could not be tried
  // "12 measured plans (1a2b3c4d)", by their content; empty without any. Part of what a job's members must agree on.
  std::string description() const;

 private:
  struct Prover {
    std::int64_t process = 0;
    std::string identity{};                         // process_identity()
    std::chrono::system_clock::time_point began{};  // the proof; to the second in the file
  };
  struct Kept {
    std::map<std::string, std::string> engines;  // by key
    std::map<std::string, bool> proofs;          // by key and engine
    std::map<std::string, Prover> under_way;     // proofs that have no result yet, likewise
  };
  static Json json_of(const Kept& kept);
  static Kept kept_in(const Json& content);
  static bool may_live(const Prover& prover);
  std::optional<Kept> read() const;
  void write(const std::string& dropped = {}) const;
  Path file_;
  std::string maker_;
  Kept known_;  // what this process goes by: what it read at its start, and what it found since
  Kept found_;  // the latter alone; another process may have changed the rest of the file meanwhile
};

}  // namespace dtrain::backend::cuda
