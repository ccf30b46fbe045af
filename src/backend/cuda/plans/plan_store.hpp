// Which engine was measured to be the fastest for which work, and which engines were seen to give the same bits: chosen
// once, kept on disk, the same in every run until the user measures again. One file for each maker. Values; one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>

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
  // Whether the engine gives the same bits for that work; nullopt: it was never tried (see needs_proof()).
  std::optional<bool> proof(const std::string& key, const std::string& engine) const;
  void keep_proof(const std::string& key, const std::string& engine, bool same_bits);  // likewise at once
  // "12 measured plans (1a2b3c4d)", by their content; empty without any. Part of what a job's members must agree on.
  std::string description() const;

 private:
  struct Kept {
    std::map<std::string, std::string> engines;  // by key
    std::map<std::string, bool> proofs;          // by key and engine
  };
  std::optional<Kept> read() const;
  void write() const;
  Path file_;
  std::string maker_;
  Kept kept_;
};

}  // namespace dtrain::backend::cuda
