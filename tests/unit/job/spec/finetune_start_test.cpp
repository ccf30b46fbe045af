#include "spec/finetune_start.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dtrain::job
