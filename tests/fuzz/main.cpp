// dtrain_fuzz FOLDER ROUNDS [TARGET...]: what is in corpus/TARGET, then the same rounds every time. FOLDER keeps the
// input being parsed, so that after a crash it is there: FOLDER/input.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <dtrain/base/error.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

std::vector<Target> all_targets(const Path& folder) {
  std::vector<Target> all = data_targets(folder);
  for (const auto& more : {network_targets(folder), weights_targets(), checkpoint_targets(folder), spec_targets()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Empty, or why this input shows a defect.
std::string defect(const Target& target, const std::string& input) {
  try {
    target.parse(input);
  } catch (const Error&) {
  } catch (const std::exception& error) {
    return fmt::format("threw {}, which is no dtrain::Error", error.what());
  }
  return {};
}

std::vector<Path> corpus_of(const Target& target) {
  std::vector<Path> files;
  const Path folder = Path(DTRAIN_TESTS_DIR) / "fuzz/corpus" / target.name;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const Target& target, const Path& folder) {
  for (const Path& file : corpus_of(target)) {
    const std::string input = read_file(file);
    write_quickly(folder / "input", input);
    const std::string why = defect(target, input);
    if (why.empty()) continue;
    fmt::print("FAIL {}: {}: {}\n", target.name, file.string(), why);
    return false;
  }
  return true;
}

bool run(const Target& target, const Path& folder, std::uint32_t rounds) {
  for (const std::string& seed : target.seeds) target.parse(seed);  // what is good must be read
  if (!replay(target, folder)) return false;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    RandomStream random(1, RandomUse::drawing, round, 0);
    const std::string input = damage(target.seeds[round % target.seeds.size()], random);
    write_quickly(folder / "input", input);
    const std::string why = defect(target, input);
    if (!why.empty()) {
      fmt::print("FAIL {}: round {}: {}\n", target.name, round, why);
      return false;
    }
  }
  fmt::print("ok   {}: {} inputs\n", target.name, rounds);
  return true;
}

}  // namespace
}  // namespace dtrain::fuzz

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: dtrain_fuzz FOLDER ROUNDS [TARGET...]\n", stderr);
    return 2;
  }
  const dtrain::Path folder = argv[1];
  const auto rounds = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  dtrain::make_folder(folder);
  int passed = 0, failed = 0;
  for (const auto& target : dtrain::fuzz::all_targets(folder)) {
    if (argc > 3 && std::find(argv + 3, argv + argc, target.name) == argv + argc) continue;
    fmt::print("     {}\n", target.name);
    std::fflush(stdout);
    (dtrain::fuzz::run(target, folder, rounds) ? passed : failed) += 1;
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed > 0;
}
