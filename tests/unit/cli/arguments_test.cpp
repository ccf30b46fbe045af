#include <gtest/gtest.h>

#include <set>

#include "arguments.hpp"

namespace dtrain::cli {
namespace {

std::vector<std::string> corrected(const std::vector<std::string>& given) {
  return correct_arguments(CommandTree(), given).words;
}

TEST(Arguments, ValuesAreJoinedToTheirOptions) {
  EXPECT_EQ(corrected({"train", "--lr", "-1", "-n", "2"}),
            (std::vector<std::string>{"train", "--lr=-1", "--num-workers=2"}));
}

TEST(Arguments, AValueIsNeverTakenForACommand) {
  EXPECT_EQ(correct_arguments(CommandTree(), {"--color", "train", "eval", "m"}).path, "eval");
}

TEST(Arguments, LettersMayStandTogether) {
  EXPECT_EQ(corrected({"train", "-qvn3"}), (std::vector<std::string>{"train", "-q", "-v", "--num-workers=3"}));
}

TEST(Arguments, NothingIsCorrectedAfterTwoDashes) {
  EXPECT_EQ(corrected({"eval", "--", "--lr"}), (std::vector<std::string>{"eval", "--", "--lr"}));
}

TEST(Arguments, TheWordsOfAnotherProgramComeAfterTheCommandsOwn) {
  const auto rest = [](const std::vector<std::string>& given) { return correct_arguments(CommandTree(), given).rest; };
  EXPECT_EQ(rest({"run", "-H", "h", "ls", "-l", "[a]"}), (std::vector<std::string>{"ls", "-l", "[a]"}));
  EXPECT_EQ(rest({"cluster", "ssh", "demo", "w0001", "ls", "-l"}), (std::vector<std::string>{"ls", "-l"}));
  EXPECT_EQ(rest({"cluster", "ssh", "demo", "--", "ls", "-l"}), (std::vector<std::string>{"ls", "-l"}));
}

TEST(Arguments, PrefixesOfGlobalOptionsCountToo) {
  EXPECT_EQ(corrected({"train", "--verb"}), (std::vector<std::string>{"train", "--verbose"}));
}

TEST(CommandTree, NoCommandHidesAnOptionOfEveryCommand) {
  const CommandTree tree;
  for (const auto& command : tree.commands) {
    std::set<std::string> seen;
    for (const config::OptionSet* set :
         std::initializer_list<const config::OptionSet*>{&command->options, &tree.global_options}) {
      for (const config::Option& option : set->options()) {
        EXPECT_TRUE(seen.insert(option.name()).second) << command->path << " " << option.name();
        if (option.letter() && option.name().size() > 1) {
          EXPECT_TRUE(seen.insert(std::string(1, option.letter())).second) << command->path << " " << option.letter();
        }
      }
    }
  }
}

TEST(CommandTree, EveryCommandHasASentenceAndAnExample) {
  const CommandTree tree;
  for (const auto& command : tree.commands) {
    EXPECT_FALSE(command->sentence.empty() || command->sentence.ends_with('.')) << command->path;
    ASSERT_FALSE(command->examples.empty()) << command->path;
    for (const std::string& example : command->examples) {
      EXPECT_TRUE(example.starts_with("dtrain " + command->path)) << example;
    }
    for (const std::string& other : command->see_also) EXPECT_TRUE(tree.find(other)) << other;
  }
}

TEST(CommandTree, EveryRecipeCanBeApplied) {
  const CommandTree tree;
  config::OptionSet& set = tree.find("train")->options;
  for (const char* recipe : {"cifar10", "imagenet", "mnist"}) set.apply_preset(recipe);
  EXPECT_EQ(set.find("network")->show(), "mlp");
  EXPECT_FALSE(set.chosen("network"));
}

}  // namespace
}  // namespace dtrain::cli
