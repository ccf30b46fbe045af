// The variables by which frameworks learn their rank. Each function knows one framework; what one sets must not break
// another.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/external/run_program.hpp>

#include "cast.hpp"
#include "parts.hpp"

namespace dtrain::external {

// NAME=value, in order, each name once.
class Variables {
 public:
  explicit Variables(std::vector<std::string> variables) : variables_(std::move(variables)) {}
  void set(std::string_view name, std::string_view value);
  void set_default(std::string_view name, std::string_view value);  // unless it is there
  void set_all(const std::vector<std::string>& variables);
  void remove_all(std::span<const std::string_view> beginnings);
  std::vector<std::string> take() { return std::move(variables_); }

 private:
  std::string* find(std::string_view name);
  std::vector<std::string> variables_;
};

// Whose environment it is.
struct Character {
  const Program& program;
  const Cast& cast;
  int rank = 0;  // of the worker that it belongs to
  const Workplace& here;
  Role role = Role::worker;
  int index = 0;

  const Seat& seat() const { return cast.seats[static_cast<std::size_t>(rank)]; }
  int local_rank() const;
  int local_size() const { return static_cast<int>(cast.neighbours(rank).size()); }
};

// What another launcher, or another job's launch, told the process that this one comes from.
void remove_other_roles(Variables& variables);
void add_common(const Character& who, Variables& variables);   // DTRAIN_*, and what all of them read
void add_torch(const Character& who, Variables& variables);    // as torchrun
void add_horovod(const Character& who, Variables& variables);  // as horovodrun
void add_jax(const Character& who, Variables& variables);
void add_tensorflow(const Character& who, Variables& variables);  // TF_CONFIG
// DMLC_*, only where there are servers: these names make `import mxnet` start one. And what scripts of Dynamic Training
// with MXNet read.
void add_mxnet(const Character& who, Variables& variables);

}  // namespace dtrain::external
