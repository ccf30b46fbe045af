// DTRAIN_FUZZ_TARGET=TARGET dtrain_libfuzzer [LIBFUZZER'S ARGUMENTS]: one parser under libFuzzer, which begins with the
// target's seeds. Without a target it names them all. No argument, since libFuzzer starts itself again with its own.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dtrain/base/error.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

Path make_work_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "dtrain-fuzz-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error(name + ": cannot be made");
  return name;
}

std::vector<Target> all_targets(const Path& folder) {
  std::vector<Target> all = data_targets(folder);
  for (const auto& more : {network_targets(folder), weights_targets()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Fuzzed {
  Path folder = make_work_folder();
  std::vector<Target> targets = all_targets(folder);
  const Target* chosen = nullptr;
  std::vector<char*> arguments{};
  std::string seeds = (folder / "seeds").string();
  ~Fuzzed() { std::filesystem::remove_all(folder); }
};

Fuzzed& fuzzed() {
  static Fuzzed one;
  return one;
}

void choose(const std::string& name) {
  Fuzzed& all = fuzzed();
  const auto found =
      std::find_if(all.targets.begin(), all.targets.end(), [&](const Target& t) { return t.name == name; });
  if (found == all.targets.end()) {
    for (const Target& target : all.targets) std::puts(target.name.c_str());
    std::exit(name.empty() ? 0 : 2);
  }
  all.chosen = &*found;
}

}  // namespace
}  // namespace dtrain::fuzz

// The last folder among libFuzzer's arguments is only read from: the seeds.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace dtrain::fuzz;
  const char* const target = std::getenv("DTRAIN_FUZZ_TARGET");
  choose(target ? target : "");
  Fuzzed& all = fuzzed();
  dtrain::make_folder(all.seeds);
  for (std::size_t i = 0; i < all.chosen->seeds.size(); ++i) {
    write_quickly(dtrain::Path(all.seeds) / std::to_string(i), all.chosen->seeds[i]);
  }
  all.arguments.assign(*argv, *argv + *argc);
  const bool one_input = std::any_of(*argv + 1, *argv + *argc, [](const char* argument) {
    return std::filesystem::is_regular_file(argument);  // which is run alone
  });
  if (!one_input) all.arguments.push_back(all.seeds.data());
  all.arguments.push_back(nullptr);
  *argc = static_cast<int>(all.arguments.size()) - 1;
  *argv = all.arguments.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dtrain::fuzz::fuzzed().chosen->parse(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const dtrain::Error&) {
  }
  return 0;
}
