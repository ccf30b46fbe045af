#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

#include "console.hpp"
#include "docs/documents.hpp"
#include "help.hpp"
#include "topics.hpp"

namespace dtrain::cli {
namespace {

// More options than this need first options.
constexpr std::ptrdiff_t kManyOptions = 30;

class Help : public ::testing::Test {
 protected:
  std::string in_short(std::string_view path) const { return short_help(tree_, path, console_); }
  std::string in_full(std::string_view path) const { return long_help(tree_, path, console_); }

  CommandTree tree_;

 private:
  Console console_{ReportOptions{.color = "never"}};
};

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& line : split(text, '\n')) longest = std::max(longest, line.size());
  return longest;
}

TEST_F(Help, FirstOptionsAreOptionsOfTheirCommand) {
  for (const auto& command : tree_.commands) {
    for (const std::string& name : command->first_options) {
      EXPECT_TRUE(command->options.find(name)) << command->path << " " << name;
    }
  }
}

TEST_F(Help, LaunchSaysThatItsRanksChooseTheExitCode) {
  const std::string row = "any  launch: a rank failed; the code of the rank that failed first";
  EXPECT_NE(in_full("launch").find(row), std::string::npos);
  EXPECT_EQ(in_full("train").find(row), std::string::npos);
  EXPECT_NE(topic_text(tree_, "exit-codes").value_or("").find(row), std::string::npos);
}

TEST_F(Help, CommandsWithManyOptionsHaveFirstOptions) {
  for (const auto& command : tree_.commands) {
    const auto shown =
        std::ranges::count_if(command->options.options(), [](const config::Option& option) { return !option.hidden; });
    EXPECT_EQ(shown > kManyOptions, !command->first_options.empty()) << command->path << " has " << shown;
  }
}

TEST_F(Help, ShortHelpNamesEveryOption) {
  for (const auto& command : tree_.commands) {
    const std::string text = in_short(command->path);
    for (const config::Option& option : command->options.options()) {
      if (option.hidden) continue;
      EXPECT_NE(text.find(option.shown_name()), text.npos) << command->path << " " << option.name();
    }
  }
}

TEST_F(Help, OnlyTheFullHelpExplainsTheOtherOptions) {
  const std::string& text = tree_.find("train")->options.find("seed")->help;
  EXPECT_NE(in_full("train").find(text.substr(0, 20)), std::string::npos);
  EXPECT_EQ(in_short("train").find(text.substr(0, 20)), std::string::npos);
}

TEST_F(Help, OptionsAreFirstAndInTheOrderOfTheCommand) {
  const std::string text = in_short("train");
  std::size_t last = text.find("First options:");
  for (const char* flag : {"--network ", "--num-layers ", "--data-train ", "--data-val ", "--num-epochs ",
                           "--model-prefix ", "Examples:", "More options:"}) {
    const std::size_t at = text.find(flag);
    ASSERT_NE(at, text.npos) << flag;
    EXPECT_GT(at, last) << flag;
    last = at;
  }
}

TEST_F(Help, LinesFollowTheTerminalFrom60To120Columns) {
  setenv("COLUMNS", "72", 1);
  EXPECT_LE(longest_line(in_full("sync")), 72U);
  setenv("COLUMNS", "300", 1);
  EXPECT_LE(longest_line(in_full("sync")), 120U);
  EXPECT_GT(longest_line(in_full("sync")), 100U);
  unsetenv("COLUMNS");
}

TEST_F(Help, UsageShowsWhichWordsMayBeRepeated) {
  for (const auto& [path, usage] : std::vector<std::pair<std::string, std::string>>{
           {"hosts add", "dtrain hosts add HOST... [options]"},
           {"jobs forget", "dtrain jobs forget [JOB...] [options]"},
           {"predict", "dtrain predict PREFIX PATH... [options]"},
           {"cluster add", "dtrain cluster add NAME COUNT|HOST... [options]"},
           {"eval", "dtrain eval [PREFIX] [options]"}}) {
    EXPECT_TRUE(in_full(path).starts_with("usage: " + usage + "\n")) << in_full(path).substr(0, 80);
  }
}

// Without the breaks and indents of the columns.
std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  const auto is_gap = [](char one, char other) { return one == ' ' && other == ' '; };
  text.erase(std::unique(text.begin(), text.end(), is_gap), text.end());
  return text;
}

TEST_F(Help, AnOnnxModelNeedsNoNetwork) {
  const std::string text = in_one_line(in_full("import"));
  EXPECT_NE(text.find("NAME|FILE network of the weights: "), text.npos);
  EXPECT_EQ(text.find("network to train"), text.npos);
  EXPECT_NE(text.find("(required, except for an ONNX model)"), text.npos);
}

TEST_F(Help, ChoicesAreWordsAndNoPlaceholders) {
  const auto choices = [&](const char* name) { return choices_of(*tree_.find("train")->options.find(name)); };
  EXPECT_EQ(choices("elastic-training-enabled"), (std::vector<std::string>{"True", "False"}));
  EXPECT_EQ(choices("random-crop"), (std::vector<std::string>{"0", "1"}));
  for (const char* const name : {"network", "freeze", "load-epoch", "class-weights", "notice-url", "seed"})
    EXPECT_TRUE(choices(name).empty()) << name;
}

// One form for all: a phrase without a full stop, which names the actor.
TEST_F(Help, TextsHaveOneForm) {
  const auto check = [](const config::Option& option, const std::string& where) {
    EXPECT_FALSE(option.help.empty()) << where;
    EXPECT_TRUE(!option.help.ends_with('.') || option.help.ends_with("...")) << where;
    for (const char* begin : {"of ", "as ", "that ", "whose "}) EXPECT_FALSE(option.help.starts_with(begin)) << where;
    for (const char* word : {"nobody", "whoever", "somebody", " told ", " tells "}) {
      EXPECT_EQ(option.help.find(word), std::string::npos) << where << ": " << word;
    }
  };
  for (const auto& command : tree_.commands) {
    for (const config::Option& option : command->options.options()) check(option, command->path + " " + option.name());
  }
  for (const config::Option& option : tree_.global_options.options()) check(option, option.name());
}

}  // namespace
}  // namespace dtrain::cli
