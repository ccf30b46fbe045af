#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/numbered_names.hpp>
#include <dtrain/data/picture_files.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/net/ssh.hpp>
#include <dtrain/train/checkpoint.hpp>
#include <dtrain/train/classification.hpp>
#include <dtrain/train/found_objects.hpp>
#include <dtrain/train/predict.hpp>

#include "cli/command.hpp"
#include "cli/printable.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/compute_options.hpp"
#include "config/data_options.hpp"
#include "config/pretrained.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "job/report/progress_line.hpp"
#include "output_places.hpp"
#include "predict_objects.hpp"
#include "predict_pictures.hpp"

namespace dtrain::cli {
namespace {

struct PredictCommand {
  config::CheckpointChoice checkpoint;
  std::vector<Path> pictures;
  config::DataOptions data;
  config::ComputeOptions compute;
  int top = 1;
  bool csv = false;
  std::optional<Path> out_dir;
  ObjectsChoice objects;
};

void bind(config::OptionSet& set, PredictCommand& options) {
  options.data.threads = usable_cpus();
  config::bind_weights(set, options.checkpoint);
  set.group("Pictures");
  set.add_paths(
         "PATH", options.pictures,
         "picture, folder of pictures, pattern or s3:// URL; - reads such names from standard input, one on each line")
      .required = true;
  config::bind_data_threads(set, options.data);
  set.group("Answers");
  set.add("--top", options.top, "K", "for a classifier, number of classes to name for each picture",
          config::at_least(1));
  set.add("--csv", options.csv, "print CSV: path, rank, label, class, probability; for a detector, its boxes");
  set.add("--out-dir", options.out_dir,
          "folder to copy each picture to, into a folder of its most probable class; a detector's pictures are drawn "
          "there with boxes, masks and names. No file is overwritten. The folder must lie apart from those of PATH");
  bind_objects(set, options.objects);
  set.group("Network");
  config::bind_checkpoint_image(set, options.data);
  set.add("--batch-size", options.compute.batch_size, "N",
          fmt::format("pictures per batch (default {}; {} for a detector)", options.compute.batch_size,
                      config::kDetectorBatch),
          config::at_least(1));
  config::bind_device(set, options.compute, 1);
}

std::vector<std::string> class_names(const train::Checkpoint& checkpoint) {
  return data::numbered_names(config::class_names_of(checkpoint.job.preprocessing),
                              static_cast<std::size_t>(checkpoint.graph.classes()));
}

// Prints what became of each picture, in the form that was asked for.
class Answers {
 public:
  Answers(const PredictCommand& options, const train::Checkpoint& checkpoint, const std::vector<Path>& files,
          Reporter& reporter)
      : options_(options), files_(files), names_(class_names(checkpoint)), reporter_(reporter) {
    constexpr std::size_t kWidest = 60;
    for (const Path& file : files) path_width_ = std::max(path_width_, printable_word(file.string()).size());
    path_width_ = std::min(path_width_, kWidest);
    for (const std::string& name : names_) class_width_ = std::max(class_width_, printable_word(name).size());
  }

  void problem(const std::string& path, const std::string& what) {
    ++problems_;
    if (reporter_.json()) {
      reporter_.answer_json(Json::object({{"schema", kSchema}, {"path", path}, {"error", what}}));
    } else {
      const bool is_named = what.starts_with(path);
      reporter_.warn(printable_word(is_named ? what : fmt::format("{}: {}", path, what)));
    }
  }

  // `copy` is where the picture was copied to, or empty.
  void guesses(const std::string& path, const std::vector<train::Guess>& best, const Path& copy) {
    if (reporter_.json()) return json(path, best, copy);
    if (!std::exchange(has_heading_, true)) heading();
    for (std::size_t i = 0; i < best.size(); ++i) {
      const std::string name = name_of(best[i].label);
      if (options_.csv) {
        reporter_.answer(fmt::format("{},{},{},{},{:.9g}", csv_field(path), i + 1, best[i].label, csv_field(name),
                                     best[i].probability));
      } else {
        reporter_.answer(fmt::format("{:<{}}  {:<{}}  {:>11.6f}", i == 0 ? printable_word(path) : "", path_width_,
                                     printable_word(name), class_width_, best[i].probability));
      }
    }
  }

  const std::string& name_of(int label) const { return names_[static_cast<std::size_t>(label)]; }
  const std::vector<std::string>& names() const { return names_; }
  ObjectAnswers of_objects() const {
    return {options_.objects, files_, names_, {options_.csv, path_width_, class_width_}, reporter_};
  }
  std::size_t problems() const { return problems_; }

 private:
  static constexpr const char* kSchema = "dtrain.predict/1";

  void heading() {
    if (options_.csv) return reporter_.answer("path,rank,label,class,probability");
    reporter_.answer(reporter_.paint_answer(
        Style::heading, fmt::format("{:<{}}  {:<{}}  probability", "path", path_width_, "class", class_width_)));
  }

  void json(const std::string& path, const std::vector<train::Guess>& best, const Path& copy) {
    Json top = Json::array();
    for (const train::Guess& guess : best) {
      top.push_back(
          Json::object({{"label", guess.label}, {"class", name_of(guess.label)}, {"probability", guess.probability}}));
    }
    Json answer = Json::object({{"schema", kSchema},
                                {"path", path},
                                {"label", best.front().label},
                                {"class", name_of(best.front().label)},
                                {"probability", best.front().probability},
                                {"top", top}});
    if (!copy.empty()) answer["copy"] = copy.string();
    reporter_.answer_json(answer);
  }

  const PredictCommand& options_;
  const std::vector<Path>& files_;
  const std::vector<std::string> names_;
  Reporter& reporter_;
  bool has_heading_ = false;
  std::size_t path_width_ = 4, class_width_ = 5, problems_ = 0;
};

void check(const PredictCommand& options) {
  if (options.objects.results.has_value() != options.objects.annotations.has_value()) {
    throw UsageError("--coco-results and --annotations need each other",
                     "for example: --coco-results found.json --annotations instances_val2017.json");
  }
  if (options.out_dir) {
    require_on_this_machine({"--out-dir", *options.out_dir}, "folder");
    refuse_folder_of_inputs({"--out-dir", *options.out_dir}, "PATH", options.pictures);
  }
  if (options.objects.results) {
    require_on_this_machine({"--coco-results", *options.objects.results}, "file");
    refuse_to_replace({"--coco-results", *options.objects.results}, {"--annotations", *options.objects.annotations});
  }
}

// The word that is a prefix of checkpoints, where pictures were given in its place.
std::optional<std::string> swapped_prefix(const PredictCommand& options) {
  if (data::is_remote(options.checkpoint.prefix) || !std::filesystem::exists(options.checkpoint.prefix)) return {};
  const auto found = std::ranges::find_if(options.pictures, [](const Path& path) {
    return !data::is_remote(path) && (!train::list_checkpoints(path).empty() || train::is_checkpoint_file(path));
  });
  return found == options.pictures.end() ? std::nullopt : std::optional(found->string());
}

train::Checkpoint load_chosen_network(const PredictCommand& options) {
  try {
    return config::load_weights(options.checkpoint, options.data.image);
  } catch (const DataError& error) {
    const auto prefix = swapped_prefix(options);
    if (!prefix) throw;
    throw DataError(error.what(),
                    fmt::format("the network comes first: `dtrain predict {} {}`", net::shell_quoted(*prefix),
                                net::shell_quoted(options.checkpoint.prefix.string())));
  }
}

train::Checkpoint load_network(PredictCommand& options, const config::OptionSet& set, Reporter& reporter) {
  train::Checkpoint checkpoint = load_chosen_network(options);
  config::take_pixels(checkpoint, options.checkpoint.prefix, set, options.data, reporter);
  const nn::Detections* const detector = nn::detection_of(checkpoint.graph);
  const bool detects = detector != nullptr;
  if (detector) {
    config::suit_evaluation_of_detector(set, options.compute);
    nn::set_score_threshold(checkpoint.graph, std::min(detector->score_threshold, options.objects.min_score));
  }
  struct Unfit {
    const char *option, *why;
    bool by_detectors;
  };
  constexpr Unfit kUnfit[] = {{"min-score", "classifier, which finds no objects", false},
                              {"coco-results", "classifier, which finds no objects", false},
                              {"top", "detector, which names all that it finds", true}};
  for (const auto& [option, why, by_detectors] : kUnfit) {
    if (set.chosen(option) && by_detectors == detects)
      throw UsageError(fmt::format("--{}: {} is a {}", option, checkpoint.graph.name, why), "leave it out");
  }
  return checkpoint;
}

std::unique_ptr<backend::Executable> compile(const PredictCommand& options, const backend::Backend& backend,
                                             const train::Checkpoint& checkpoint) {
  const backend::CompileOptions compile =
      config::compile_options(options.compute, config::choose_dtype(options.compute, backend), 1);
  auto executable = config::compile_evaluation(backend, checkpoint.graph, compile, options.data);
  executable->write_state(checkpoint.state);
  return executable;
}

// The name that a copy of the picture gets.
Path name_of_copy(const Path& file) { return data::shown_path(file).filename(); }

// Where write() says that the picture now is; nullopt, and a problem of this picture alone, where it throws Error.
std::optional<Path> written_copy(const Path& file, const std::function<Path()>& write, Answers& answers) {
  try {
    return write();
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    answers.problem(file.string(), MissingPicture{file.string(), error.what(), error.hint()}.whole());
    return std::nullopt;
  }
}

// Answers one picture of a classifier.
void answer_classes(const PredictCommand& options, nn::LossKind loss, const Path& file,
                    const train::Prediction& prediction, const std::shared_ptr<net::ObjectStore>& store,
                    Answers& answers) {
  const auto best = train::best_guesses(prediction.logits, loss, options.top);
  if (!best.front().is_number()) {
    return answers.problem(file.string(),
                           "the network computes no number for it: its training may have diverged, or the pixels are "
                           "prepared in another way than for it");
  }
  const auto copy = [&] {
    const Path name = Path(answers.name_of(best.front().label)) / name_of_copy(file);
    return data::add_new_file(*options.out_dir, name, data::read_picture(file, store));
  };
  const auto copied = options.out_dir ? written_copy(file, copy, answers) : Path();
  if (copied) answers.guesses(file.string(), best, *copied);
}

// Answers one picture of a detector.
void answer_objects(const PredictCommand& options, const nn::Detections& layer, const Path& file,
                    const train::Prediction& prediction, const std::shared_ptr<net::ObjectStore>& store,
                    Answers& answers, ObjectAnswers& objects) {
  const train::FoundObjects all = train::found_objects(layer, *prediction.picture, prediction.logits);
  const std::vector<train::FoundObject>& found = all.objects;
  const auto draw = [&] {
    const Path name = name_of_copy(file).stem().string() + ".png";
    return data::add_new_file(*options.out_dir, name,
                              draw_found(data::read_picture(file, store), objects.shown(found), answers.names()));
  };
  const auto drawn = options.out_dir ? written_copy(file, draw, answers) : Path();
  if (drawn) objects.found(file, found, *drawn);
}

// Returns how many pictures were read and could not be decoded.
std::size_t answer_all(const PredictCommand& options, const train::Checkpoint& checkpoint,
                       const std::vector<Path>& files, const std::shared_ptr<net::ObjectStore>& store,
                       PictureReader& reader, Answers& answers, Reporter& reporter) {
  std::size_t without_pixels = 0;
  ObjectAnswers objects = answers.of_objects();
  const auto backend = config::choose_backend(options.compute);
  const auto executable = compile(options, *backend, checkpoint);
  const nn::Detections* const detector = nn::detection_of(checkpoint.graph);
  job::ProgressLine progress(reporter);
  const auto take = [&](const train::Prediction& prediction) {
    const Path& file = files[prediction.index];
    if (!prediction.problem.empty()) {
      ++without_pixels;
      answers.problem(file.string(), prediction.problem);
    } else if (detector) {
      answer_objects(options, *detector, file, prediction, store, answers, objects);
    } else {
      answer_classes(options, nn::loss_of(checkpoint.graph).kind, file, prediction, store, answers);
    }
    progress.show("predict", prediction.index + 1, files.size(), "pictures");
  };
  train::predict(
      checkpoint.graph, *executable, files.size(), [&](std::size_t i) { return reader.read(files[i]); },
      {.augment = validation_loader(options.data).augment,
       .batch = options.compute.batch_size,
       .threads = options.data.threads,
       .views = config::test_views(options.data),
       .detection = options.data.detection,
       .in_groups = config::computes_in_groups(options.data, *backend)},
      take);
  objects.finish();
  return without_pixels - reader.failures();
}

std::string hint_of_unreadable(const Path& prefix, const std::vector<Path>& files) {
  const auto record = std::ranges::find(files, ".rec", [](const Path& file) { return file.extension(); });
  if (record == files.end())
    return fmt::format("dtrain reads {} files; the warnings above give the reasons", data::kImagesRead);
  return fmt::format("`dtrain eval {} --data-val {}` takes record files", net::shell_quoted(prefix.string()),
                     net::shell_quoted(record->string()));
}

ExitCode act(const PredictCommand& given, const config::OptionSet& set, Reporter& reporter) {
  PredictCommand options = given;
  check(options);
  const train::Checkpoint checkpoint = load_network(options, set, reporter);
  const auto store = std::make_shared<net::ObjectStore>();
  const ListedPictures listed = list_pictures(options.pictures, store);
  Answers answers(options, checkpoint, listed.files, reporter);
  if (options.out_dir) {  // again: patterns and standard input name pictures that check() did not see
    const bool has_folders = !nn::detection_of(checkpoint.graph);
    if (has_folders) require_class_folders(*options.out_dir, answers.names());
    refuse_folder_of_pictures({"--out-dir", *options.out_dir},
                              has_folders ? answers.names() : std::vector<std::string>(), listed.files);
  }
  // A single name that is missing is the error itself, which needs no warning before it.
  const bool is_only_one = listed.files.empty() && listed.missing.size() == 1;
  if (reporter.json() || !is_only_one) {
    for (const MissingPicture& missing : listed.missing) answers.problem(missing.name, missing.whole());
  }
  if (listed.files.empty()) refuse_missing_pictures(listed.missing);
  if (options.out_dir) make_folder(*options.out_dir);
  const auto most = static_cast<std::size_t>(options.compute.batch_size);
  options.compute.batch_size = static_cast<int>(std::min(most, listed.files.size()));
  PictureReader reader(store);
  const std::size_t undecoded = answer_all(options, checkpoint, listed.files, store, reader, answers, reporter);
  const std::size_t pictures = listed.files.size() + listed.missing.size();
  if (answers.problems() == pictures) {
    refuse_unanswered(pictures, undecoded > 0 ? hint_of_unreadable(options.checkpoint.prefix, listed.files) : "",
                      reader);
  }
  return answers.problems() == 0 ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace

std::unique_ptr<Command> make_predict() {
  auto command =
      make_command<PredictCommand>("predict", "name what pictures show, with a trained classifier or detector", act);
  command->examples = {"dtrain predict m/r18 photo.jpg --top 5", "dtrain predict m/r18 photos --csv",
                       "dtrain predict m/r18 photos --out-dir sorted", "dtrain predict m/r18 'photos/*.jpg' --json",
                       "dtrain predict m/retina photos --out-dir drawn"};
  command->see_also = {"eval", "data pack", "export"};
  return command;
}

}  // namespace dtrain::cli
