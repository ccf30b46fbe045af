#include "spec/train_start.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
#include "spec/checkpoint_agreement.hpp"
#include "spec/first_run.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

class TrainStart : public ::testing::Test {
 protected:
  TrainStart() {
    bind(set_, options_);
    options_.epochs = 1;  // as the checkpoint's schedule
    start_.job.optimizer.kind = nn::OptimizerKind::sgd;
    start_.state.optimizer.assign(start_.state.parameters.size(), 1.0f);
    start_.state.average.clear();
    start_.state.updates = 500;
  }
  void choose(const char* name, const char* text) {
    config::Option& option = *set_.find(name);
    option.set(text);
    option.source = config::Source::flag;
  }
  bool noted(std::string_view words) const {
    return std::ranges::any_of(reporter_.notes, [&](const std::string& note) { return note.ends_with(words); });
  }

  config::TrainOptions options_;
  config::OptionSet set_;
  train::Checkpoint start_ = train::small_checkpoint();
  RecordingReporter reporter_;
};

TEST_F(TrainStart, CountsUpdatesFromWhereMomentsBegin) {
  options_.optimizer.kind = nn::OptimizerKind::sgd;
  EXPECT_FALSE(complete_optimizer_state(start_, options_));
  EXPECT_EQ(start_.state.updates, 500u);
  options_.optimizer.kind = nn::OptimizerKind::adamw;
  EXPECT_TRUE(complete_optimizer_state(start_, options_));
  EXPECT_EQ(start_.state.updates, 0u);
  EXPECT_EQ(start_.state.optimizer, std::vector<float>(2 * start_.state.parameters.size(), 0.0f));
}

TEST_F(TrainStart, KeepsAnAverageFromWarmingUpAgainWithNewMoments) {
  options_.optimizer.kind = nn::OptimizerKind::adamw;
  options_.optimizer.average = 0.99f;
  options_.optimizer.average_warms_up = true;
  train::Checkpoint fresh = start_;
  fit_optimizer_state(fresh, options_, reporter_);
  EXPECT_TRUE(options_.optimizer.average_warms_up) << "the average begins as the moments do";
  start_.state.average.assign(start_.state.parameters.size() + start_.state.statistics.size(), 0.5f);
  fit_optimizer_state(start_, options_, reporter_);
  EXPECT_FALSE(options_.optimizer.average_warms_up);
  EXPECT_TRUE(noted("The checkpoint's average of weights goes on without --ema-warmup"));
}

TEST_F(TrainStart, TakesTheWarmUpOfTheAverageThoughItsDecayIsChosen) {
  options_.resume = true;
  start_.job.optimizer.average = 0.9f;
  start_.job.optimizer.average_warms_up = true;
  choose("ema", "0.99");
  agree_with_checkpoint(start_, set_, options_);
  EXPECT_FLOAT_EQ(options_.optimizer.average, 0.99f);
  EXPECT_TRUE(options_.optimizer.average_warms_up);
}

TEST_F(TrainStart, NamesTheRatesOfTheFirstRunThatWereLeftOut) {
  options_.resume = true;
  options_.optimizer.weight_decay = 0.0001f;
  options_.schedule.base = 0.05;
  start_.job.optimizer = options_.optimizer;
  start_.job.schedule = options_.schedule;
  start_.job.schedule.total_epochs = options_.epochs = 7;
  const auto others = [&] { return other_rates(start_, set_, options_); };
  using Others = std::vector<OtherRate>;
  EXPECT_EQ(others(), Others{});
  start_.job.schedule.base = 0.001;
  start_.job.schedule.kind = nn::ScheduleKind::cosine;
  start_.job.optimizer.weight_decay = 0.0005f;
  start_.job.optimizer.momentum = 0.8f;
  EXPECT_EQ(others(), (Others{{"lr", "0.001", "0.05"},
                              {"lr-schedule", "cosine", "step"},
                              {"mom", "0.8", "0.9"},
                              {"wd", "0.0005", "0.0001"}}));
  warn_of_other_rates(start_, set_, options_, reporter_);
  EXPECT_EQ(reporter_.warnings,
            std::vector<std::string>{"--resume: the checkpoint was trained with --lr 0.001, --lr-schedule cosine, "
                                     "--mom 0.8, --wd 0.0005, and this run goes on with 0.05, step, 0.9, 0.0001: give "
                                     "the options of the first run again"});
  for (const auto& [name, text] : {std::pair("lr", "0.05"), {"wd", "0.0001"}, {"lr-schedule", "step"}})
    choose(name, text);
  EXPECT_EQ(others(), (Others{{"mom", "0.8", "0.9"}}));
  start_.job.optimizer.kind = nn::OptimizerKind::adam;
  EXPECT_EQ(others(), (Others{{"optimizer", "adam", "sgd"}})) << "adam has no momentum to compare";
}

TEST_F(TrainStart, NamesWhatElseOfTheFirstRunWasLeftOut) {
  const TemporaryFolder folder;
  const auto others = [&](const char* text) {
    return other_options(config::parse_config(text, "train.toml"), set_, options_);
  };
  using Others = std::vector<OtherRate>;
  constexpr const char* kFirst =
      "[train]\nmixup = 0.2\nrandom-erasing = 0.25\nthreads = 3\ncutout = 0\nrand-augment-ops = 4\ngone = 1\n"
      "auto-augment = \"never\"\n[eval]\ncutmix = 1\n";
  EXPECT_EQ(others(kFirst), Others{}) << "it does not resume";
  options_.resume = true;
  EXPECT_EQ(others(kFirst), (Others{{"mixup", "0.2", "0"}, {"random-erasing", "0.25", "0"}}));
  choose("mixup", "0.4");
  EXPECT_EQ(others(kFirst), (Others{{"random-erasing", "0.25", "0"}}));
  start_.job.optimizer = options_.optimizer;
  start_.job.schedule = options_.schedule;
  options_.model_prefix = folder / "m";
  make_folder(folder / "m-run");
  write_file_atomic(folder / "m-run/train.first.toml", kFirst);
  write_file_atomic(folder / "m-run/train.toml", "[train]\n");
  warn_of_other_rates(start_, set_, options_, reporter_);
  EXPECT_EQ(
      reporter_.warnings,
      std::vector<std::string>{
          "--resume: the checkpoint was trained with --random-erasing 0.25, and this run goes on with 0: give the "
          "options of the first run again, as `dtrain train --config " +
          (folder / "m-run/train.first.toml").string() + " --resume` does"});
}

TEST_F(TrainStart, NamesEveryOptionOfScheduleAndOptimizer) {
  options_.resume = true;
  nn::Optimizer& rule = start_.job.optimizer = options_.optimizer;
  nn::Schedule& schedule = start_.job.schedule = options_.schedule;
  const auto others = [&] {
    std::vector<std::string> names;
    for (const OtherRate& other : other_rates(start_, set_, options_)) names.push_back(other.option);
    return names;
  };
  using OptionNames = std::vector<std::string>;
  schedule.factor = 0.5, schedule.boundaries = {3, 5};
  EXPECT_EQ(others(), (OptionNames{"lr-factor", "lr-step-epochs"}));
  schedule = options_.schedule;
  schedule.warmup_epochs = 5, schedule.warmup = nn::WarmUp::sqrt, schedule.warmup_start = 0.01;
  EXPECT_EQ(others(), (OptionNames{"warmup-epochs", "warmup-strategy", "warmup-lr"}));
  EXPECT_EQ(other_rates(start_, set_, options_).back(), (OtherRate{"warmup-lr", "0.01", ""}));
  schedule = options_.schedule;
  schedule.kind = nn::ScheduleKind::cosine, schedule.final_share = 0.01, schedule.cycles = 3, schedule.power = 4;
  EXPECT_EQ(others(), (OptionNames{"lr-schedule", "lr-final", "lr-cycles"})) << "cosine has no power";
  schedule.kind = nn::ScheduleKind::poly;
  EXPECT_EQ(others(), (OptionNames{"lr-schedule", "lr-final", "lr-power"}));
  schedule.kind = nn::ScheduleKind::one_cycle, schedule.rise_share = 0.1;
  EXPECT_EQ(others(), (OptionNames{"lr-schedule", "lr-rise", "lr-final"}));
  schedule = options_.schedule;
  rule.clip_norm = 1, rule.clip_gradient = 2, rule.average = 0.99f;
  rule.bias_lr_factor = 2, rule.head_lr_factor = 3, rule.layer_decay = 0.7f, rule.newton_schulz.steps = 5;
  EXPECT_EQ(others(),
            (OptionNames{"clip-norm", "clip-gradient", "ema", "bias-lr-factor", "head-lr-factor", "layer-decay"}))
      << "sgd has no muon-steps";
  agree_with_checkpoint(start_, set_, options_);
  EXPECT_EQ(std::ranges::count(others(), "ema"), 0) << "it is taken from the checkpoint";
  rule = options_.optimizer;
  rule.kind = options_.optimizer.kind = nn::OptimizerKind::muon;
  rule.newton_schulz.steps = 5, rule.newton_schulz.a = 3, rule.rest_momentum = 0.5f;
  EXPECT_EQ(others(), (OptionNames{"muon-steps", "muon-coefficients", "muon-rest-mom"}));
}

TEST_F(TrainStart, IsSilentAboutAScheduleThatTheUserReplaces) {
  options_.resume = true;
  start_.job.optimizer = options_.optimizer;
  start_.job.schedule = options_.schedule;
  start_.job.schedule.factor = 0.5;
  EXPECT_EQ(other_rates(start_, set_, options_).size(), 1u);
  choose("lr-schedule", "cosine");
  EXPECT_TRUE(other_rates(start_, set_, options_).empty());
}

TEST_F(TrainStart, IsSilentAboutAWarmUpThatIsFittedToTheRun) {
  options_.resume = true;
  options_.schedule.kind = nn::ScheduleKind::cosine;
  options_.schedule.warmup_epochs = 5;
  choose("num-epochs", "20");
  start_.job.optimizer = options_.optimizer;
  start_.job.schedule = options_.schedule;
  start_.job.schedule.total_epochs = 4;
  start_.job.schedule.warmup_epochs = 2;
  const auto others = [&] { return other_rates(start_, set_, options_).size(); };
  EXPECT_EQ(others(), 0u);
  start_.job.schedule.warmup_epochs = 1;
  EXPECT_EQ(others(), 1u) << "nothing fits it to a quarter";
  set_.find("warmup-epochs")->origin = "--finetune";
  EXPECT_EQ(others(), 0u) << "by the number of epochs";
  start_.job.schedule.total_epochs = 20;
  EXPECT_EQ(others(), 1u);
  start_.job.schedule.kind = nn::ScheduleKind::one_cycle;
  choose("lr-schedule", "cosine");
  EXPECT_EQ(others(), 0u) << "one-cycle has none";
}

TEST_F(TrainStart, NamesTheNumberOfEpochsThatWasLeftOut) {
  options_.resume = true;
  options_.epochs = 300;
  options_.schedule.kind = nn::ScheduleKind::cosine;
  start_.job.optimizer = options_.optimizer;
  start_.job.schedule = options_.schedule;
  start_.job.schedule.total_epochs = 40;
  EXPECT_EQ(other_rates(start_, set_, options_), (std::vector<OtherRate>{{"num-epochs", "40", "300"}}));
  choose("num-epochs", "40");
  EXPECT_TRUE(other_rates(start_, set_, options_).empty());
}

TEST_F(TrainStart, NotesWhereAnotherNumberOfEpochsMovesTheRate) {
  options_.resume = true;
  options_.schedule.base = 0.5;
  start_.cursor.samples_seen = 2000;  // two epochs
  choose("num-epochs", "4");
  const auto notes = [&](nn::ScheduleKind kind) {
    start_.job.schedule = options_.schedule;
    start_.job.schedule.kind = options_.schedule.kind = kind;
    start_.job.schedule.total_epochs = 2;
    reporter_.notes.clear();
    warn_of_other_rates(start_, set_, options_, reporter_);
    return reporter_.notes;
  };
  EXPECT_EQ(notes(nn::ScheduleKind::cosine).size(), 1u);
  EXPECT_TRUE(noted("takes 4 epochs instead of 2: the learning rate was 0 and becomes 0.25"));
  for (const auto kind : {nn::ScheduleKind::poly, nn::ScheduleKind::one_cycle}) EXPECT_EQ(notes(kind).size(), 1u);
  EXPECT_TRUE(notes(nn::ScheduleKind::step).empty());
  choose("num-epochs", "2");
  EXPECT_TRUE(notes(nn::ScheduleKind::cosine).empty());
}

TEST_F(TrainStart, IsSilentAboutRatesThatCannotBeCompared) {
  start_.job.optimizer.weight_decay = 0.3f;
  EXPECT_TRUE(other_rates(start_, set_, options_).empty()) << "it does not resume";
  options_.resume = true;
  EXPECT_FALSE(other_rates(start_, set_, options_).empty());
  start_.cursor.samples_seen = 0;
  EXPECT_TRUE(other_rates(start_, set_, options_).empty()) << "the checkpoint was not trained";
  start_.cursor.samples_seen = 1000;
  choose("optimizer", "adamw");
  EXPECT_EQ(std::ranges::count(other_rates(start_, set_, options_), "wd", &OtherRate::option), 0) << "another's";
}

TEST_F(TrainStart, NamesTheOptionsOfTheFirstRunWhereTheRecipesDataAreNotThere) {
  const TemporaryFolder folder;
  options_.resume = true;
  options_.model_prefix = folder / "shapes";
  options_.data.train = folder / "cifar10_train.rec";
  EXPECT_FALSE(find_start(options_, set_, {}, reporter_)) << "no run was there";
  const Path file = folder / "shapes-run/train.toml";
  make_folder(file.parent_path());
  write_file_atomic(file, "[train]\n");
  try {
    find_start(options_, set_, {}, reporter_);
    ADD_FAILURE() << "the data are not there";
  } catch (const DataError& error) {
    EXPECT_NE(error.hint().find("dtrain train --config " + file.string() + " --resume"), std::string::npos)
        << error.hint();
  }
  choose("data-train", "nowhere.rec");
  EXPECT_FALSE(find_start(options_, set_, {}, reporter_)) << "the user chose the data";
}

TEST_F(TrainStart, TheStrongerOfTwoWaysToBeginDecides) {
  const auto settle = [&](config::Source of_epoch, config::Source of_other, const char* other) {
    choose("load-epoch", "3");
    choose(other, std::string(other) == "resume" ? "true" : "w.safetensors");
    set_.find("load-epoch")->source = of_epoch;
    set_.find(other)->source = of_other;
    settle_load_epoch(set_, {}, options_);
  };
  constexpr auto kFile = config::Source::named_config, kFlag = config::Source::flag;
  settle(kFile, kFlag, "resume");
  EXPECT_FALSE(options_.load_epoch);
  EXPECT_TRUE(options_.resume);
  settle(kFlag, kFile, "resume");
  EXPECT_TRUE(options_.load_epoch == 3 && !options_.resume);
  settle(kFlag, kFlag, "resume");
  EXPECT_THROW(find_start(options_, set_, {}, reporter_), UsageError);
  options_.resume = false;
  set_.find("resume")->source = config::Source::fallback;
  settle(kFlag, kFile, "pretrained");
  EXPECT_TRUE(options_.load_epoch == 3 && !options_.pretrained.file);
  settle(kFile, kFlag, "pretrained");
  EXPECT_FALSE(options_.load_epoch);
  EXPECT_EQ(options_.pretrained.file, Path("w.safetensors"));
  settle(kFlag, kFlag, "pretrained");
  EXPECT_THROW(find_start(options_, set_, {}, reporter_), UsageError);
}

TEST_F(TrainStart, AnOptionThatIsDroppedIsNotChosenAnyMore) {
  for (const char* name : {"load-epoch", "pretrained"}) {
    choose(name, "3");
    set_.find(name)->source = config::Source::named_config;
  }
  choose("finetune", "w.safetensors");
  drop_weaker_starts(set_, options_);
  EXPECT_FALSE(options_.load_epoch);
  EXPECT_FALSE(options_.pretrained.file);
  EXPECT_FALSE(set_.chosen("load-epoch") || set_.chosen("pretrained"));
  options_.pretrained.file = options_.pretrained.finetune;
  drop_weaker_starts(set_, options_);
  EXPECT_EQ(options_.pretrained.file, Path("w.safetensors")) << "its own file";
}

TEST_F(TrainStart, NotesImagesThatANewNetworkUsuallyGetsLarger) {
  choose("network", "mobilenet_v2");
  graph_of_run({}, set_, options_, reporter_);
  EXPECT_TRUE(noted("its usual ones are --image-shape 3,224,224"));
  reporter_.notes.clear();
  options_.pretrained.file = "w.pth";
  graph_of_run({}, set_, options_, reporter_);
  EXPECT_TRUE(reporter_.notes.empty()) << "the weights say the size";
}

TEST_F(TrainStart, SaysThatLayersStayFrozenAsTheyWere) {
  graph_of_run(start_, set_, options_, reporter_);
  EXPECT_TRUE(reporter_.notes.empty());
  nn::freeze(start_.graph, "backbone");
  graph_of_run(start_, set_, options_, reporter_);
  EXPECT_TRUE(noted("stay as they are, as the checkpoint says; --freeze 0 lets all learn"));
  const TemporaryFolder folder;
  write_file_atomic(folder / "network.json", nn::graph_to_json(start_.graph).dump());
  choose("network", (folder / "network.json").c_str());
  graph_of_run({}, set_, options_, reporter_);
  EXPECT_TRUE(noted("stay as they are, as its file says; --freeze 0 lets all learn"));
}

// As MXNet's scripts are called to go on: the symbol knows neither the network's name nor how its weights began.
TEST_F(TrainStart, TakesASymbolOfTheNetworkThatIsChosen) {
  options_.data.image = {3, 32, 32};
  for (const char* name : {"lenet", "speednet", "resnet-v1"}) {
    const nn::Graph built = nn::build_network({.name = name, .image = options_.data.image});
    start_.graph = nn::graph_from_json(nn::graph_to_mxnet_symbol(built), "m/x-symbol.json", built.input());
    choose("network", name);
    EXPECT_EQ(graph_of_run(start_, set_, options_, reporter_).name, start_.graph.name) << name;
  }
  choose("network", "mlp");
  EXPECT_THROW(graph_of_run(start_, set_, options_, reporter_), UsageError);
}

// The command of the first run names neither: its weights chose the images, and its records the classes.
TEST_F(TrainStart, TakesImagesAndClassesThatAreNotChosenFromTheCheckpoint) {
  constexpr int kClasses = 7;
  const Path model = Path(DTRAIN_TESTS_DIR) / "unit/train/golden/model.onnx";
  const nn::Graph named = nn::build_network({.name = "mobilenet_v2", .image = {3, 64, 64}, .classes = kClasses});
  for (const auto& [network, saved] : {std::pair(std::string("mobilenet_v2"), named),
                                       {model.string(), train::network_of_onnx_model(model, {}, kClasses)}}) {
    start_.graph = saved;
    choose("network", network.c_str());
    EXPECT_EQ(graph_of_run(start_, set_, options_, reporter_).classes(), kClasses) << network;
    EXPECT_EQ(options_.data.image, saved.input()) << network;
    EXPECT_EQ(options_.data.classes, kClasses) << network;
  }
  choose("num-classes", "5");
  EXPECT_THROW(graph_of_run(start_, set_, options_, reporter_), UsageError);
}

TEST_F(TrainStart, RefusesImagesThatTheCheckpointsNetworkHasNot) {
  start_.graph = nn::build_network({.name = "mobilenet_v2", .image = {3, 64, 64}});
  choose("network", "mobilenet_v2");
  choose("image-shape", "3,32,32");
  try {
    graph_of_run(start_, set_, options_, reporter_);
    ADD_FAILURE() << "other images were taken";
  } catch (const UsageError& error) {
    EXPECT_TRUE(std::string_view(error.what()).ends_with("its images are 3,64,64, not 3,32,32")) << error.what();
  }
}

TEST_F(TrainStart, AModelOfAnotherRunTrainsWithTheLossOfTheOptions) {
  const TemporaryFolder folder;
  nn::set_loss(start_.graph, {.label_smoothing = 0.1f, .kind = nn::LossKind::sigmoid, .focal_gamma = 2});
  train::export_onnx(start_, folder / "m.onnx");
  choose("network", (folder / "m.onnx").c_str());
  const auto loss = [&] { return nn::loss_of(graph_of_run({}, set_, options_, reporter_)); };
  EXPECT_EQ(loss(), nn::SoftmaxLoss{});
  options_.network.options.label_smoothing = 0.2f;
  EXPECT_EQ(loss(), nn::SoftmaxLoss{.label_smoothing = 0.2f});
}

TEST_F(TrainStart, TakesNoDropPathThatTheCheckpointsNetworkHasNot) {
  choose("drop-path", "0.25");
  EXPECT_THROW(graph_of_run(start_, set_, options_, reporter_), UsageError);
  choose("drop-path", "0");
  EXPECT_NO_THROW(graph_of_run(start_, set_, options_, reporter_));
}

}  // namespace
}  // namespace dtrain::job
