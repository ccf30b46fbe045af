#include <dtrain/nn/networks.hpp>

#include "config/run_spec.hpp"
#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

std::string training() {
  config::TrainSpec spec{.options = config::options_of_this_machine(),
                         .graph = nn::build_network({.name = "mlp"}),
                         .data = {},
                         .start = "x"};
  return to_json(config::make_run_spec(std::move(spec))).dump();
}

std::string program() {
  config::LaunchOptions options;
  options.words = {"python3", "a.py"};
  return to_json(config::make_run_spec(config::ProgramSpec{.options = options, .program = config::program_of(options)}))
      .dump();
}

}  // namespace

std::vector<Target> spec_targets() {
  return {{"run-spec", {training(), program()}, [](const std::string& input) {
             to_json(config::run_spec_from_json(Json::parse(input, "input"))).dump();
           }}};
}

}  // namespace dtrain::fuzz
