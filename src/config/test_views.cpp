#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "data_options.hpp"

namespace dtrain::config {

static std::vector<std::string> numbers_of_views() { return {"1", "2", "6"}; }

static Option& add_test_views(OptionSet& set, DataOptions& options, const char* images) {
  return set.add_choice("--test-views", options.test_views, numbers_of_views(),
                        fmt::format("number of views of each {} to average: 1 is the image, 2 adds its mirror image, 6 "
                                    "adds both shifted by one pixel",
                                    images));
}

void bind_test_views(OptionSet& set, DataOptions& options) {
  set.group("Data");
  add_test_views(set, options, "validation image");
}

void bind_checkpoint_views(OptionSet& set, DataOptions& options) {
  add_test_views(set, options, "image of a classifier").help += " (default the checkpoint's)";
}

int test_views(const DataOptions& options) { return static_cast<int>(parse_integer(options.test_views).value()); }

void take_test_views(const Json& preprocessing, const OptionSet& set, DataOptions& options) {
  const Json* const views = preprocessing.is_object() ? preprocessing.find("test_views") : nullptr;
  if (!views || set.chosen("test-views")) return;
  const std::string text = views->dump();
  const std::vector<std::string> numbers = numbers_of_views();
  if (std::ranges::find(numbers, text) == numbers.end()) {
    throw DataError(fmt::format("the checkpoint's test_views is {}, which is none of {}", text, join(numbers, ", ")),
                    "the file is damaged: copy it again, or choose a number with setting 'test-views'");
  }
  options.test_views = text;
}

}  // namespace dtrain::config
