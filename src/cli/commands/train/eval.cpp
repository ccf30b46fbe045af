#include <fmt/format.h>

#include <algorithm>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/numbered_names.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/classification.hpp>
#include <dtrain/train/trainer.hpp>

#include "cli/command.hpp"
#include "cli/printable.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/compute_options.hpp"
#include "config/data_options.hpp"
#include "config/pretrained.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "eval_report.hpp"
#include "eval_results.hpp"
#include "output_places.hpp"
#include "report_files.hpp"

namespace dtrain::cli {
namespace {

struct EvalCommand {
  config::CheckpointChoice checkpoint;
  config::DataOptions data;
  config::ComputeOptions compute;
  int top_k = 5;
  bool per_class = false;
  std::optional<Path> report;
  ResultsChoice results;
};

void bind(config::OptionSet& set, EvalCommand& options) {
  config::bind_weights(set, options.checkpoint);
  config::bind_validation_data(set, options.data);
  set.find("PREFIX")->required = false;
  config::bind_checkpoint_image(set, options.data);
  set.add("--batch-size", options.compute.batch_size, "N",
          fmt::format("samples per batch (default {}; {} for a detector)", options.compute.batch_size,
                      config::kDetectorBatch),
          config::at_least(1));
  set.add("--top-k", options.top_k, "K", "K of the reported top-K accuracy", config::at_least(1));
  set.add("--per-class", options.per_class, "print precision, recall and F1 of every class; --json always holds them");
  set.add("--report", options.report,
          "folder for tables and pictures: scores of each class, confusion matrix, reliability, predictions and the "
          "worst mistakes");
  config::bind_device(set, options.compute, 1);
  bind_results(set, options.results);
}

struct Evaluation {
  train::EvaluationReport report;
  Judgement judgement;
  std::size_t without_numbers = 0;  // of the samples of the judgement
  std::int64_t bad_records = 0;
  std::string first_bad_record, bad_records_warning;  // empty: there are none
};

void add_samples(const backend::HostBatch& batch, std::span<const float> logits, nn::LossKind loss,
                 std::vector<train::JudgedSample>& samples) {
  if (batch.n == 0) return;  // all its records are bad
  const std::size_t classes = logits.size() / static_cast<std::size_t>(batch.n);
  for (int i = 0; i < batch.n; ++i) {
    const auto own = logits.subspan(static_cast<std::size_t>(i) * classes, classes);
    samples.push_back({batch.sample_ids[i], batch.labels[i], train::best_guesses(own, loss, 1).front()});
  }
}

Evaluation evaluate(const EvalCommand& options, const train::Checkpoint& checkpoint) {
  const auto backend = config::choose_backend(options.compute);
  const backend::DType dtype = config::choose_dtype(options.compute, *backend);
  const backend::CompileOptions compile = config::compile_options(options.compute, dtype, options.top_k);
  data::LoaderOptions loading = validation_loader(options.data);
  loading.has_fixed_classes = true;
  const bool detects = options.data.detection.has_value();
  config::load_for(*backend, loading);
  if (config::computes_in_groups(options.data, *backend)) loading.group_batch = options.compute.batch_size;
  const auto executable = config::compile_evaluation(*backend, checkpoint.graph, compile, options.data);
  data::Loader loader(*options.data.validation, loading);
  executable->write_state(checkpoint.state);
  std::vector<train::JudgedSample> samples;
  Evaluation evaluation;
  evaluation.report = train::evaluate(checkpoint.graph, *executable, loader, options.compute.batch_size,
                                      config::test_views(options.data), *comm::make_single(),
                                      [&](const backend::HostBatch& batch, std::span<const float> logits) {
                                        if (detects) return;
                                        add_samples(batch, logits, nn::loss_of(checkpoint.graph).kind, samples);
                                      });
  evaluation.bad_records = loader.bad_records();
  evaluation.first_bad_record = loader.first_bad_record();
  evaluation.bad_records_warning = loader.bad_records_warning();
  if (detects) return evaluation;
  evaluation.without_numbers = static_cast<std::size_t>(
      std::ranges::count_if(samples, [](const train::JudgedSample& each) { return !each.guess.is_number(); }));
  evaluation.judgement =
      judge(std::move(samples), config::class_names_of(checkpoint.job.preprocessing), checkpoint.graph.classes());
  return evaluation;
}

Json scores_json(const Judgement& judgement) {
  Json list = Json::array();
  for (std::size_t label = 0; label < judgement.scores.size(); ++label) {
    const train::ClassScore& score = judgement.scores[label];
    list.push_back(Json::object({{"label", std::uint64_t{label}},
                                 {"class", judgement.names[label]},
                                 {"samples", score.support},
                                 {"predicted", score.guessed},
                                 {"correct", score.correct},
                                 {"precision", score.precision()},
                                 {"recall", score.recall()},
                                 {"f1", score.f1()}}));
  }
  return list;
}

void answer_scores(const Judgement& judgement, Reporter& reporter) {
  std::size_t width = std::string_view("class").size();
  for (const std::string& name : judgement.names) width = std::max(width, printable_word(name).size());
  reporter.answer(fmt::format("{:<{}}  samples  precision  recall      f1", "class", width));
  for (std::size_t i = 0; i < judgement.scores.size(); ++i) {
    const train::ClassScore& score = judgement.scores[i];
    reporter.answer(fmt::format("{:<{}}  {:>7}  {:>9.4f}  {:>6.4f}  {:>6.4f}", printable_word(judgement.names[i]),
                                width, score.support, score.precision(), score.recall(), score.f1()));
  }
}

Json first_bad_json(const Evaluation& evaluation) {
  return evaluation.bad_records > 0 ? Json(evaluation.first_bad_record) : Json();
}

Json document(const EvalCommand& options, const train::Checkpoint& checkpoint, const Evaluation& evaluation,
              const std::vector<Path>& files) {
  const train::EvaluationReport& report = evaluation.report;
  const std::vector<std::string> names = config::class_names_of(checkpoint.job.preprocessing);
  Json json = Json::object({{"schema", "dtrain.eval/1"},
                            {"network", checkpoint.graph.name},
                            {"epoch", checkpoint.cursor.epoch},
                            {"data", options.data.validation->string()},
                            {"samples", report.samples},
                            {"bad_records", evaluation.bad_records},
                            {"first_bad_record", first_bad_json(evaluation)},
                            {"test_views", config::test_views(options.data)},
                            {"accuracy", report.accuracy},
                            {"top_k", options.top_k},
                            {"top_k_accuracy", report.top_k_accuracy},
                            {"loss", report.loss},
                            {"classes", json_texts(names)},
                            {"per_class", scores_json(evaluation.judgement)},
                            {"macro_f1", evaluation.judgement.macro_f1()},
                            {"calibration_error", evaluation.judgement.calibration_error()},
                            {"seconds", report.time.count()}});
  if (options.report) json["report"] = paths_json(files);
  return json;
}

// What a detector found: the twelve numbers, and those of each class, of boxes and, where it finds them, of masks.
void answer_detection(const EvalCommand& options, const train::Checkpoint& checkpoint, const Evaluation& evaluation,
                      Reporter& reporter) {
  const train::EvaluationReport& report = evaluation.report;
  const train::CocoScore boxes{*report.boxes, report.boxes_by_class};
  std::optional<train::CocoScore> masks;
  if (report.masks) masks = {*report.masks, report.masks_by_class};
  const std::vector<std::string> names =
      data::numbered_names(config::class_names_of(checkpoint.job.preprocessing), boxes.by_category.size());
  if (reporter.json()) {
    return reporter.answer_json(Json::object({{"schema", "dtrain.eval-detector/1"},
                                              {"network", checkpoint.graph.name},
                                              {"epoch", checkpoint.cursor.epoch},
                                              {"data", options.data.validation->string()},
                                              {"samples", report.samples},
                                              {"bad_records", evaluation.bad_records},
                                              {"first_bad_record", first_bad_json(evaluation)},
                                              {"boxes", coco_score_json(boxes, names)},
                                              {"masks", masks ? coco_score_json(*masks, names) : Json()},
                                              {"seconds", report.time.count()}}));
  }
  answer_coco_score("box", boxes, names, options.per_class, reporter);
  if (masks) answer_coco_score("mask", *masks, names, options.per_class, reporter);
  reporter.answer(fmt::format("samples={}", report.samples));
}

void answer_report(const EvalCommand& options, const train::Checkpoint& checkpoint, const Evaluation& evaluation,
                   const std::vector<Path>& files, Reporter& reporter) {
  if (evaluation.report.boxes) return answer_detection(options, checkpoint, evaluation, reporter);
  if (reporter.json()) return reporter.answer_json(document(options, checkpoint, evaluation, files));
  const train::EvaluationReport& report = evaluation.report;
  reporter.answer(fmt::format("accuracy={:.6f}\ntop_k_accuracy_{}={:.6f}\nloss={:.6f}\nsamples={}", report.accuracy,
                              options.top_k, report.top_k_accuracy, report.loss, report.samples));
  if (options.report) {
    reporter.answer(fmt::format("macro_f1={:.6f}\ncalibration_error={:.6f}", evaluation.judgement.macro_f1(),
                                evaluation.judgement.calibration_error()));
  }
  if (options.per_class) answer_scores(evaluation.judgement, reporter);
  for (const Path& file : files) reporter.answer(file.string());
}

void warn_of_samples(const Evaluation& evaluation, Reporter& reporter) {
  if (evaluation.bad_records > 0) reporter.warn(evaluation.bad_records_warning);
  if (evaluation.without_numbers == 0) return;
  reporter.warn(
      fmt::format("{} of the {} samples get no numbers of the network, and their predictions mean nothing: the "
                  "training may have diverged, or the pixels are prepared in another way than for it",
                  evaluation.without_numbers, evaluation.judgement.samples.size()));
}

std::vector<Path> write_files(const EvalCommand& options, const Evaluation& evaluation) {
  return write_report(*options.report, evaluation.judgement,
                      {*options.data.validation, validation_loader(options.data).remote});
}

// The same label that means something else would make the accuracy meaningless. A checkpoint that knows the names of
// its classes may have more outputs than names; of one without names only the number of its outputs can be compared. A
// detector's outputs may count categories that no picture shows: those of torchvision count COCO's ids, which have
// gaps, and one that learned from records without names has as many as the recipe.
void check_classes(const train::Checkpoint& checkpoint, const Path& records, Reporter& reporter) {
  const auto store = data::is_remote(records) ? std::make_shared<net::ObjectStore>() : nullptr;
  const std::vector<std::string> here = data::class_names(data::find_records(records.string(), store), store);
  const std::vector<std::string> trained = config::class_names_of(checkpoint.job.preprocessing);
  data::require_same_classes({"the checkpoint", trained}, {records.string(), here});
  if (!trained.empty()) return;
  const int classes = checkpoint.graph.classes();
  if (!nn::detection_of(checkpoint.graph)) return data::require_class_count(classes, {records.string(), here});
  if (here.empty() || std::ssize(here) == classes) return;
  reporter.warn(
      fmt::format("{}: names {} class{}, but the checkpoint finds {}, without names: where a label is another class on "
                  "each side, the average precision is wrong. `dtrain data ls` and `dtrain predict` show what labels "
                  "mean; `dtrain train --pretrained` learns the classes of these records",
                  data::shown_files(records), here.size(), here.size() == 1 ? "" : "es", classes));
}

void refuse_beside_results(const config::OptionSet& set) {
  for (const char* name : {"PREFIX", "data-val"}) {
    const config::Option& other = *set.find(name);
    if (!other.given) continue;
    throw UsageError(
        fmt::format("eval: {}: --results and --annotations are scored without a checkpoint", other.shown_name()),
        "leave it out; or leave these two out to evaluate a checkpoint");
  }
}

ExitCode act(const EvalCommand& given, const config::OptionSet& set, Reporter& reporter) {
  if (given.report) require_on_this_machine({"--report", *given.report}, "folder");
  if (given.results.any()) refuse_beside_results(set);
  if (given.results.any())
    return score_results(given.results, given.per_class, given.report.value_or(Path()), reporter);
  if (set.chosen("pictures")) {
    throw UsageError("eval: --pictures: only --results draws pictures of a folder",
                     "leave it out; or score a results file of COCO with --results and --annotations");
  }
  EvalCommand options = given;
  for (const char* needed : {"PREFIX", "data-val"}) {
    if (set.chosen(needed)) continue;
    throw UsageError(fmt::format("eval: {} is missing", set.find(needed)->shown_name()),
                     "for example: dtrain eval m/r8 --data-val d/cifar10_val.rec; or score a results file of COCO with "
                     "--results and --annotations");
  }
  config::require_records(*options.data.validation);
  train::Checkpoint checkpoint = config::load_weights(options.checkpoint, options.data.image);
  config::take_pixels(checkpoint, options.checkpoint.prefix, set, options.data, reporter);
  if (options.data.detection) config::suit_evaluation_of_detector(set, options.compute);
  if (options.data.detection && options.report) {
    throw UsageError("--report: judges classifiers", "--per-class prints what a detector finds of each class");
  }
  if (options.data.detection && set.chosen("top-k")) throw UsageError("--top-k: judges classifiers", "leave it out");
  check_classes(checkpoint, *options.data.validation, reporter);
  if (options.report) {
    refuse_to_replace_in_report(*options.report);
    make_folder(*options.report);
  }
  const Evaluation evaluation = evaluate(options, checkpoint);
  warn_of_samples(evaluation, reporter);
  const auto answer = [&](const std::vector<Path>& files) {
    answer_report(options, checkpoint, evaluation, files, reporter);
  };
  if (options.report) {
    answer_with_files([&] { return write_files(options, evaluation); }, answer);
  } else {
    answer({});
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_eval() {
  auto command = make_command<EvalCommand>("eval", "compute accuracy and loss of a checkpoint on record files", act);
  command->examples = {"dtrain eval m/r8 --load-epoch 1 --data-val d/cifar10_val.rec",
                       "dtrain eval m/r8-0001.safetensors --data-val d/cifar10_val.rec --json",
                       "dtrain eval m/r8 --data-val d/cifar10_val.rec --report report",
                       "dtrain eval --results found.json --annotations instances_val2017.json",
                       "dtrain eval --results found.json --annotations a.json --pictures val2017 --report report"};
  command->see_also = {"train", "predict", "inspect"};
  return command;
}

}  // namespace dtrain::cli
