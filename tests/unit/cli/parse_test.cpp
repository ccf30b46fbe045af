#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "config/recipes.hpp"
#include "parse.hpp"

namespace dtrain::cli {
namespace {

using Words = std::vector<std::string>;

std::string given(const Words& words, const std::string& name) {
  CommandTree tree;
  const Parsed parsed = parse(tree, words);
  const config::Option* option = parsed.command->options.find(name);
  return option->given.value_or("nothing");
}

// What error and hint say together.
std::string refusal(const Words& words) {
  CommandTree tree;
  try {
    parse(tree, words);
  } catch (const UsageError& error) {
    return std::string(error.what()) + "; " + error.hint();
  }
  return "accepted";
}

Words rest(const Words& words) {
  CommandTree tree;
  Words taken;
  for (const char* name : {"run", "cluster ssh", "launch"}) {
    for (config::Option& option : tree.find(name)->options.options()) {
      if (option.take_words) option.take_words = [&taken](Words all) { taken = std::move(all); };
    }
  }
  parse(tree, words);
  return taken;
}

TEST(Parse, AValueIsTheWordAfterItsOptionOrBehindTheSign) {
  EXPECT_EQ(given({"train", "--lr", "-1", "-n", "2"}, "lr"), "-1");
  EXPECT_EQ(given({"train", "--lr=3", "-n", "2"}, "num-workers"), "2");
  EXPECT_EQ(given({"train", "--lr=3", "--lr", "4"}, "lr"), "4");
  EXPECT_EQ(given({"train", "--prepare=--x"}, "prepare"), "--x");
  EXPECT_EQ(given({"eval", "--data-val", "train", "data"}, "PREFIX"), "data");
}

TEST(Parse, UnderscoresInNamesCountAsDashes) {
  EXPECT_EQ(given({"launch", "--max_restarts", "3", "true"}, "max-restarts"), "3");
  EXPECT_EQ(given({"launch", "--max_restarts=4", "true"}, "max-restarts"), "4");
  EXPECT_EQ(rest({"launch", "train.py", "--max_restarts", "5"}), (Words{"train.py", "--max_restarts", "5"}));
}

TEST(Parse, AnEmptyValueIsAValue) {
  EXPECT_EQ(given({"train", "--gpus", "", "--lr", "3"}, "gpus"), "");
  EXPECT_EQ(given({"train", "--prepare=", "--lr", "3"}, "prepare"), "");
  EXPECT_EQ(given({"train", "--random-resized-crop", ""}, "random-resized-crop"), "");
}

TEST(Parse, AnOptionMayStandForItsOwnValue) {
  EXPECT_EQ(given({"train", "--gpus", "--lr", "3"}, "gpus"), "");
  EXPECT_EQ(given({"train", "--random-resized-crop", "--lr", "3"}, "random-resized-crop"), "1");
  EXPECT_EQ(given({"train", "--deterministic"}, "deterministic"), "on");
  EXPECT_EQ(given({"train", "--deterministic", "off"}, "deterministic"), "off");
}

TEST(Parse, AValueIsNeverTakenForACommand) {
  CommandTree tree;
  EXPECT_EQ(parse(tree, {"--color", "train", "eval", "m"}).path, "eval");
  EXPECT_EQ(parse(tree, {"data", "--json", "ls", "data"}).path, "data ls");
  EXPECT_EQ(parse(tree, {"data"}).path, "data");
  EXPECT_FALSE(parse(tree, {}).command);
}

TEST(Parse, LettersMayStandTogether) {
  CommandTree tree;
  const Parsed parsed = parse(tree, {"train", "-qvn3"});
  EXPECT_EQ(parsed.command->options.find("num-workers")->given, "3");
  EXPECT_EQ(tree.global_options.find("quiet")->given, "true");
  EXPECT_EQ(tree.global_options.find("verbose")->given, "true");
}

TEST(Parse, WordsAfterTwoDashesAreNoOptions) { EXPECT_EQ(given({"eval", "--", "--lr"}, "PREFIX"), "--lr"); }

TEST(Parse, AnOptionBehindTwoDashesIsTakenForAName) {
  EXPECT_EQ(refusal({"data", "pack", "--", "-photos", "--out", "p"}),
            "--out: stands after --, where all words are names; put it before --");
  EXPECT_EQ(refusal({"eval", "--", "m", "--data-val=d"}),
            "--data-val: stands after --, where all words are names; put it before --");
  EXPECT_EQ(refusal({"eval", "--", "m", "-q"}), "-q: stands after --, where all words are names; put it before --");
  EXPECT_EQ(refusal({"eval", "--", "m", "-x"}).find("eval: '-x' is one word too many; "), 0u);
  EXPECT_EQ(refusal({"eval", "--bogus", "--", "m"}).find("--bogus: unknown option; "), 0u);
}

TEST(Parse, TheWordsOfAnotherProgramComeAfterTheCommandsOwn) {
  EXPECT_EQ(rest({"run", "-H", "h", "ls", "-l", "[a]", "--x="}), (Words{"ls", "-l", "[a]", "--x="}));
  EXPECT_EQ(rest({"run", "ls", "--", "-q"}), (Words{"ls", "--", "-q"}));
  EXPECT_EQ(rest({"cluster", "ssh", "demo", "w0001", "ls", "-l"}), (Words{"ls", "-l"}));
  EXPECT_EQ(rest({"cluster", "ssh", "demo", "--", "ls", "-l"}), (Words{"ls", "-l"}));
  EXPECT_EQ(rest({"launch", "-n", "2", "--", "-v", "--", "train"}), (Words{"-v", "--", "train"}));
}

TEST(Parse, NamesAreNotAbbreviated) {
  EXPECT_EQ(refusal({"train", "--verb"}), "--verb: unknown option; did you mean '--verbose'?");
  EXPECT_EQ(refusal({"train", "--num-epoch", "2"}), "--num-epoch: unknown option; did you mean '--num-epochs'?");
  EXPECT_EQ(refusal({"train", "--data-n=x"}), "--data-n: unknown option; did you mean '--data-nthreads'?");
  EXPECT_EQ(refusal({"train", "--max-random-a", "1"}),
            "--max-random-a: unknown option; it could be --max-random-area, --max-random-aspect-ratio");
}

TEST(Parse, LongOptionsHaveTwoDashes) {
  for (const Words& words :
       {Words{"train", "-num-epochs", "1"}, {"train", "-num-epochs=1"}, {"train", "-v", "-num-epochs"}})
    EXPECT_EQ(refusal(words), "-num-epochs: unknown option; did you mean '--num-epochs'?");
  EXPECT_EQ(refusal({"train", "-network", "resnet"}), "-network: unknown option; did you mean '--network'?");
  EXPECT_EQ(refusal({"train", "-lr", "0.1"}), "-lr: unknown option; did you mean '--lr'?");
  EXPECT_EQ(refusal({"train", "-verbose"}), "-verbose: unknown option; did you mean '--verbose'?");
  EXPECT_EQ(refusal({"-verbose", "train"}), "-verbose: unknown option before a command; did you mean '--verbose'?");
  EXPECT_EQ(refusal({"launch", "-num-workers", "2", "true"}),
            "-num-workers: unknown option; did you mean '--num-workers'?");
  EXPECT_EQ(given({"tail-logs", "--grep", "-rank"}, "grep"), "-rank") << "a value";
  EXPECT_EQ(given({"eval", "--", "-data-val"}, "PREFIX"), "-data-val") << "a name";
  EXPECT_EQ(rest({"launch", "-n", "2", "train.py", "-num-workers", "5"}), (Words{"train.py", "-num-workers", "5"}));
  EXPECT_EQ(rest({"launch", "--", "train.py", "-num-workers"}), (Words{"train.py", "-num-workers"}));
}

TEST(Parse, NamesOfOtherProgramsGetTheNameHere) {
  EXPECT_EQ(refusal({"train", "--epochs", "3"}), "--epochs: unknown option; did you mean '--num-epochs'?");
  EXPECT_EQ(refusal({"train", "--learning-rate=3"}), "--learning-rate: unknown option; did you mean '--lr'?");
  EXPECT_EQ(refusal({"train", "--model", "resnet18"}), "--model: unknown option; did you mean '--network'?");
  EXPECT_EQ(refusal({"train", "--workers", "4"}),
            "--workers: unknown option; it could be --num-workers, --data-nthreads");
  EXPECT_EQ(refusal({"train", "--lr-scheduler", "x"}), "--lr-scheduler: unknown option; did you mean '--lr-schedule'?");
}

TEST(Parse, APrefixThatIsGivenAsToTrainHasItsPlaceNamed) {
  for (const char* command : {"eval", "export", "inspect", "predict"}) {
    EXPECT_EQ(
        refusal({command, "--model-prefix", "m/x"}),
        fmt::format("--model-prefix: unknown option; give the prefix without an option: `dtrain {} PREFIX`", command));
  }
}

TEST(Parse, AnOptionOfMpirunIsNoShortOneWithAValue) {
  EXPECT_EQ(refusal({"train", "-np", "4"}), "-np: unknown option; did you mean '--num-workers'?");
  EXPECT_EQ(refusal({"launch", "-np", "4", "true"}),
            "-np: unknown option; it could be --num-workers, --nproc-per-host");
  EXPECT_EQ(rest({"launch", "-n", "4", "mpirun", "-np", "2", "true"}), (Words{"mpirun", "-np", "2", "true"}));
}

TEST(Parse, AWordTooManyMayBelongToAnOption) {
  EXPECT_EQ(refusal({"stop", "job"}),
            "stop: 'job' is one word too many; did you mean '--job-dir job'? `dtrain stop --help` lists the arguments");
  EXPECT_EQ(refusal({"train", "help"}),
            "train: 'help' is one word too many; `dtrain train --help` explains the command");

  EXPECT_EQ(refusal({"eval", "m/x", "d/x.rec"}),
            "eval: 'd/x.rec' is one word too many; did you mean '--data-val d/x.rec'? `dtrain eval --help` lists the "
            "arguments");
  EXPECT_EQ(refusal({"export", "m/x", "x.onnx"}),
            "export: 'x.onnx' is one word too many; did you mean '--out x.onnx'? `dtrain export --help` lists the "
            "arguments");
}

TEST(Parse, EveryStrangeWordIsNamed) {
  EXPECT_EQ(refusal({"train", "extra"}),
            "train: 'extra' is one word too many; put quotes around a value with spaces, or around a pattern such as "
            "'d/*.rec'; `dtrain train --help` lists the arguments");
  EXPECT_EQ(refusal({"train", "--help", "extra"}).substr(0, 34), "train: 'extra' is one word too man");
  EXPECT_EQ(refusal({"--bogus", "train"}),
            "--bogus: unknown option before a command; `dtrain --help` lists the options");
  EXPECT_EQ(refusal({"data", "perpare"}), "data perpare: unknown command; did you mean 'dtrain data prepare'?");
  EXPECT_EQ(refusal({"frobnicate", "train"}).find("frobnicate: unknown command; commands are: train, launch"), 0u);
  EXPECT_EQ(refusal({"data", "perpare", "ls"}), "data perpare: unknown command; did you mean 'dtrain data prepare'?");
  EXPECT_EQ(refusal({"pack"}), "pack: unknown command; did you mean 'dtrain data pack'?");
  EXPECT_EQ(refusal({"data", "predict"}), "data predict: unknown command; did you mean 'dtrain predict'?");
  EXPECT_EQ(refusal({"hosts", "ls"}), "hosts ls: unknown command; did you mean 'dtrain hosts list'?");
  EXPECT_EQ(refusal({"data", "list"}), "data list: unknown command; did you mean 'dtrain data ls'?");
  EXPECT_EQ(refusal({"jobs", "statt"}).find("jobs statt: unknown command; commands are: "), 0u);
  EXPECT_EQ(refusal({"wait"}), "wait: unknown command; did you mean 'dtrain jobs wait'?");
  EXPECT_EQ(refusal({"add"}), "add: unknown command; it could be 'dtrain hosts add', 'dtrain cluster add'");
  EXPECT_EQ(refusal({"verofy"}), "verofy: unknown command; did you mean 'dtrain data verify'?");
  EXPECT_EQ(refusal({"trian"}), "trian: unknown command; did you mean 'dtrain train'?");
  EXPECT_EQ(refusal({"frobnicate"}).find("frobnicate: unknown command; commands are: train, "), 0u);
  EXPECT_EQ(refusal({"run", "--bogus", "ls"}).substr(0, 23), "--bogus: unknown option");
}

TEST(Parse, MissingAndUnwantedValuesAreRefused) {
  EXPECT_EQ(refusal({"train", "--lr"}), "--lr: needs a value (RATE); ");
  EXPECT_EQ(refusal({"train", "-vn"}), "--num-workers: needs a value (N); ");
  EXPECT_EQ(refusal({"train", "--lr", "--seed", "1"}), "--lr: needs a value (RATE); ");
  EXPECT_EQ(refusal({"train", "--resume=yes"}),
            "--resume: takes no value; give it alone, or leave --resume out; where a file or a variable sets it: "
            "DTRAIN_RESUME=0");
  EXPECT_EQ(refusal({"train", "--no-elastic"}),
            "--no-elastic: unknown option; leave --elastic out; where a file or a variable sets it: DTRAIN_ELASTIC=0");
  EXPECT_EQ(refusal({"train", "--no-lrr"}).find("DTRAIN_"), std::string::npos);
}

// The table of names in other programs leads somewhere.
TEST(Parse, EveryHintNamesAnOption) {
  for (const char* name : {"amp", "arch", "gpu", "momentum", "output-dir", "weight-decay", "world-size"}) {
    EXPECT_EQ(refusal({"train", std::string("--") + name}).find("lists the options"), std::string::npos) << name;
  }
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
  for (const std::string& recipe : config::recipe_names()) {
    set.find("recipe")->set(recipe);
    set.apply_preset();
    EXPECT_FALSE(set.chosen("network")) << recipe;
  }
  EXPECT_EQ(set.find("network")->show(), "mask-rcnn") << "that of the last one";
}

TEST(CommandTree, ADetectorHasTheRecipeOfDetection) {
  const CommandTree tree;
  config::OptionSet& set = tree.find("train")->options;
  config::Option& network = *set.find("network");
  network.set("retinanet");
  network.source = config::Source::flag;
  set.apply_preset();
  EXPECT_EQ(set.find("recipe")->show(), "detection");
  EXPECT_EQ(set.find("lr-schedule")->origin, "recipe detection");
  EXPECT_FALSE(set.chosen("recipe"));
}

TEST(CommandTree, AChosenRecipeComesBeforeThatOfTheNetwork) {
  const CommandTree tree;
  config::OptionSet& set = tree.find("train")->options;
  for (const auto& [name, value] : {std::pair("network", "retinanet"), std::pair("recipe", "imagenet")}) {
    config::Option& option = *set.find(name);
    option.set(value);
    option.source = config::Source::flag;
  }
  set.apply_preset();
  EXPECT_EQ(set.find("recipe")->show(), "imagenet");
}

}  // namespace
}  // namespace dtrain::cli
