"""A real training in one process, with its report: what the command leaves is what the page shows."""

import json

from browser import BoardWorld
from PIL import Image
from test_folders import write_run
from world import eventually


def test_a_training_with_its_report(world: BoardWorld):
    """Curves with the learning rate, the model, the confusion matrix and the worst mistakes; the export has them too."""
    train = ["train", "--network", "mlp", "--image-shape", "3,28,28", "--batch-size", 32, "--threads", 1, "--lr", 0.0003,
             "--data-train", world.data / "shapes_train.rec", "--data-val", world.data / "shapes_val.rec"]
    world.run(*train, "--num-epochs", 2, "--model-prefix", "m/a")
    world.run("eval", "m/a", "--data-val", world.data / "shapes_val.rec", "--report", "m/a-report")
    board = world.board("m")
    screen = world.screen().open(board.url).wait("tbody tr", "finished").wait("tbody tr", "mlp")
    screen.press("tbody a", "ENTER").wait("h2", "Learning rate").wait("h2", "Gradient norm").wait(".facts", "2 / 2")
    screen.click("Evaluation", "nav a").wait(".matrix", "circle").wait("table", "precision")
    eventually(lambda: screen.count("img.sheet") == 2 and screen.script("return [...document.querySelectorAll('img.sheet')].every((one) => one.naturalWidth)"),
               "the pictures of the report are drawn")
    eventually(lambda: screen.count(".small-charts path") == 10, "a curve for each class")
    screen.keep("report")
    assert "0.000000" not in screen.text("table"), "scores with the digits that a reader compares"
    assert screen.script("return [...document.querySelectorAll('img.drawn')].map((one) => one.clientWidth <= 560)") == [True]
    screen.expect_accessible()
    screen.click("Model", "nav a").wait("table", "fc1").wait(".graph text", "fc1 \u00b7 dense").wait(".facts", "mlp")
    told = json.loads(world.run("inspect", "m/a", "--json").stdout)["parameters"]
    assert screen.text(".facts").replace("\u202f", "").count(f"Parameters\n{told}"), (told, screen.text(".facts"))
    screen.click("Show how weights and the optimizer's state are spread").wait(".histogram rect")
    ends = screen.text(".spread span").split()
    assert len(ends) >= 4 and all(float(text) or text == "0" for text in ends), ends
    screen.click("Job", "nav a").wait(".panel", "one process")
    assert not screen.script("return [...document.querySelectorAll('.facts, .panel')].some((one) => one.offsetParent && /Goodput|Generations|Ledger/.test(one.innerText))"), \
        "figures of a job, where there is none"
    screen.click("Logs", "nav a").wait("[role=status]", "keeps no logs").expect_no_error()
    world.run("board", "m/a", "--export", "a.html")
    exported = world.screen().open((world.folder / "a.html").as_uri()).wait("tbody tr", "finished").press("tbody a", "ENTER")
    exported.wait(".chart path").click("Evaluation", "nav a").wait(".matrix", "circle").wait(".small-charts", "circle")
    drawn = "return [...document.querySelectorAll('img.sheet')].filter((one) => one.naturalWidth).length"
    eventually(lambda: exported.script(drawn) == 2, "the pictures of the report travel along")
    exported.click("Data", "nav a").wait("table", "circle")
    eventually(lambda: exported.script(drawn) == 1, "so does the contact sheet")
    exported.expect_no_error()


def test_what_is_written_meanwhile_appears(world: BoardWorld):
    """Checkpoints, validations and a report come onto pages that are open; what a reader chose stays."""
    train = ["train", "--network", "mlp", "--image-shape", "3,28,28", "--batch-size", 32, "--threads", 1, "--lr", 0.0003,
             "--data-train", world.data / "shapes_train.rec", "--data-val", world.data / "shapes_val.rec", "--model-prefix", "m/a"]
    write_run(world.folder / "m" / "a-run", 20)
    board = world.board("m")
    run = eventually(board.rows, "the run is found")[0]["id"]
    model = world.screen().open(board.url + "#/model/" + run).wait("main", "no checkpoint yet")
    page = world.screen().open(board.url + "#/evaluation/" + run).wait("main", "No report")
    world.run(*train, "--num-epochs", 1)
    model.wait(".facts", "mlp").wait("option", "a-0001")
    page.wait("[aria-label^='Each validation'] tbody tr", "1")
    world.run(*train, "--num-epochs", 2, "--resume")
    shown = "return document.querySelector('.tools select').value"
    eventually(lambda: model.script(shown) == "a-0002", "the newest checkpoint is shown")
    model.click("Show how weights and the optimizer's state are spread").wait(".histogram rect")
    eventually(lambda: page.count("[aria-label^='Each validation'] tbody tr") == 2, "two validations")
    world.run("eval", "m/a", "--data-val", world.data / "shapes_val.rec", "--report", "m/a-report")
    page.wait(".matrix", "circle").expect_no_error()
    world.run(*train, "--num-epochs", 3, "--resume")
    eventually(lambda: "a-0003" in model.text("option"), "the third one is offered")
    assert model.script(shown) == "a-0002" and model.count(".histogram rect"), "what is looked at stays"
    model.expect_no_error()


def test_a_report_of_found_objects_shows_boxes_and_masks(world: BoardWorld):
    """What `dtrain eval --results --report` draws and scores stands on the page of the run beside it."""
    write_run(world.folder / "m" / "a-run", 200, finished=True)
    Image.new("RGB", (64, 48), (90, 120, 90)).save(world.folder / "one.png")
    mask = {"segmentation": [[8, 8, 40, 8, 40, 30, 8, 30]], "bbox": [8, 8, 32, 22], "image_id": 1}
    (world.folder / "truth.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "one.png", "width": 64, "height": 48}], "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}],
        "annotations": [{"id": 1, "category_id": 1, "area": 704, "iscrowd": 0, **mask}]}))
    (world.folder / "found.json").write_text(json.dumps([{"category_id": 1, "score": 0.9, **mask}, {"category_id": 2, "score": 0.4, **mask}]))
    world.run("eval", "--results", "found.json", "--annotations", "truth.json", "--pictures", ".", "--report", "m/a-objects")
    board = world.board("m")
    screen = world.screen().open(board.url).wait("tbody tr", "finished").press("tbody a", "ENTER").wait(".chart path")
    screen.click("Evaluation", "nav a").wait("table", "mask_ap").wait("h2", "Boxes and masks")
    eventually(lambda: screen.script("return [...document.querySelectorAll('img.sheet')].some((one) => one.naturalWidth > 900)"), "the picture is drawn")
    screen.keep("objects")
    screen.expect_accessible().expect_no_error()


def test_the_picture_of_plot_is_that_of_the_board(world: BoardWorld):
    """`dtrain plot` and the board draw the same run from the same lines."""
    world.run("train", "--network", "mlp", "--image-shape", "3,28,28", "--batch-size", 32, "--threads", 1, "--num-epochs", 1, "--lr", 0.0003,
              "--data-train", world.data / "shapes_train.rec", "--model-prefix", "m/a")
    world.run("plot", "m/a", "--out", "a.svg")
    board = world.board("m")
    run = eventually(lambda: [row for row in board.rows() if row["state"] == "finished"], "the run is read")[0]["id"]
    code, picture = board.ask(f"/api/plot?run={run}&format=svg")
    assert code == 200 and picture == (world.folder / "a.svg").read_text()
