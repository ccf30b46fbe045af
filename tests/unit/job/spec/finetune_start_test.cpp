#include "spec/finetune_start.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include <dtrain/base/error.hpp>

#include "common/recording_reporter.hpp"
#include "common/test_server.hpp"

namespace dtrain::job {
namespace {

TEST(Finetuning, NamesNoSecretOfTheUrlOfItsPictures) {
  const net::TestServer server("s3_server.py");
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  const auto choose = [&](const char* name, const std::string& text) {
    config::Option& option = *set.find(name);
    option.set(text);
    option.source = config::Source::flag;
  };
  choose("finetune", "w.safetensors");
  choose("network", "mlp");
  choose("data-train", server.url("public/plain/p.rec?X-Amz-Signature=hidden"));
  RecordingReporter reporter;
  try {
    choose_finetuning(options, set, reporter);
    FAIL() << "the records name no classes";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "--finetune: " + server.url("public/plain/p.rec") + " does not name its classes");
  }
}

// What --finetune from `of_finetune` says beside this option from `source`.
std::string complaint_beside(const char* name, const char* text, config::Source source,
                             config::Source of_finetune = config::Source::flag) {
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  set.find("finetune")->set("w.safetensors");
  set.find("finetune")->source = of_finetune;
  set.find(name)->set(text);
  set.find(name)->source = source;
  RecordingReporter reporter;
  try {
    choose_finetuning(options, set, reporter);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Finetuning, BeatsAnotherStartOfAFile) {
  using config::Source;
  for (const auto& [name, text] : {std::pair{"load-epoch", "3"}, std::pair{"pretrained", "v.safetensors"}}) {
    EXPECT_EQ(complaint_beside(name, text, Source::named_config), "--finetune: --data-train is missing");
    EXPECT_EQ(complaint_beside(name, text, Source::flag),
              std::string("--finetune and --") + name + ": both choose how to begin");
    EXPECT_EQ(complaint_beside(name, text, Source::flag, Source::environment), "none") << "the flag decides";
  }
}

}  // namespace
}  // namespace dtrain::job
