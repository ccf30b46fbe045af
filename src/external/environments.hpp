// The variables by which frameworks learn their rank. Each function knows one framework; its variables must not break
// another.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "rank_placement.hpp"
#include "rank_processes.hpp"

namespace dtrain::external {

// NAME=value, in order, each name once.
class Variables {
 public:
  explicit Variables(std::vector<std::string> variables) : variables_(std::move(variables)) {}
  void set(std::string_view name, std::string_view value);
  void set_default(std::string_view name, std::string_view value);  // keeps an existing value
  void set_all(const std::vector<std::string>& variables);
  std::optional<std::string> value(std::string_view name);
  void remove_all(std::span<const std::string_view> beginnings);
  std::vector<std::string> take() { return std::move(variables_); }

 private:
  std::string* find(std::string_view name);
  std::vector<std::string> variables_;
};

// The process that an environment is for.
struct ProcessIdentity {
  const Program& program;
  const RankPlacement& placement;
  int rank = 0;  // of the worker that it belongs to
  const RunContext& here;
  Role role = Role::worker;
  int index = 0;

  const RankInfo& info() const { return placement.ranks[static_cast<std::size_t>(rank)]; }
  int local_rank() const { return placement.local_rank(rank); }
  int local_size() const { return static_cast<int>(placement.neighbours(rank).size()); }
};

// Removes the variables of other launchers, and of the launch that this process comes from.
void remove_other_roles(Variables& variables);
void add_common(const ProcessIdentity& who, Variables& variables);  // DTRAIN_*, and what all frameworks read
void add_torch(const ProcessIdentity& who, Variables& variables);   // as torchrun does
// The variables that horovodrun sets. Without Program::horovod the address of the rendezvous is missing, so that
// Horovod fails instead of training on each rank alone.
void add_horovod(const ProcessIdentity& who, Variables& variables);
// The address of the coordinator; with Program::jax also the variables of Open MPI in which JAX finds the number of
// processes and its own number. They would mislead programs that use MPI.
void add_jax(const ProcessIdentity& who, Variables& variables);
// TF_CONFIG. With servers rank 0 is the chief, as TensorFlow 2 requires, unless the program takes its role as an
// argument.
void add_tensorflow(const ProcessIdentity& who, Variables& variables);
// Empties CUDA_VISIBLE_DEVICES: a parameter server that took the GPUs would keep its workers from them.
void hide_gpus(Variables& variables);
// With Program::gpus_per_rank: CUDA_VISIBLE_DEVICES becomes the share of this local rank of what it names, or of the
// machine's GPUs where it is not set. Throws Error where these are too few.
void share_gpus(const ProcessIdentity& who, Variables& variables);
// DMLC_*, only where there are servers, because these names make `import mxnet` start one. Also the variables that
// scripts of Dynamic Training with MXNet read, without the one that lets MXNet change the workers itself.
void add_mxnet(const ProcessIdentity& who, Variables& variables);

}  // namespace dtrain::external
