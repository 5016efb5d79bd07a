"""What a file holds that was refused; seen by a confined child."""

from runner.diagnosis.known import KnownFailure, When
from runner.formats.signs import Sign
from runner.verdict import VerdictWord


def _seen(*signs: Sign) -> tuple[When, ...]:
    return (When(words=(VerdictWord.BAD_OUTPUT,), signs=signs),)


CONTENTS = (
    KnownFailure(
        slug="empty-file",
        title="The file is empty",
        when=_seen(Sign.EMPTY),
        cause="the file was opened and nothing was written, or the program ended before its buffer was",
        fix="close the file (with open(…) as file:), and do not end with os._exit",
    ),
    KnownFailure(
        slug="not-text",
        title="The file is no text",
        when=_seen(Sign.NOT_TEXT),
        cause="the file is a spreadsheet, an archive, a pickle or an array with a text file's name",
        fix="write plain text, as the csv and json modules do",
    ),
    KnownFailure(
        slug="wide-text",
        title="The file is UTF-16 or UTF-32",
        when=_seen(Sign.WIDE),
        cause="the file was written by PowerShell, Excel or with encoding='utf-16'",
        fix="open it with encoding='utf-8'",
    ),
    KnownFailure(
        slug="separator",
        title="The fields are separated by something else",
        when=_seen(Sign.SEPARATOR),
        cause="the fields of a row are separated by another character than the challenge asks for",
        fix="csv.writer(file, delimiter=…) or to_csv(sep=…) with the separator of: proctor challenge show",
    ),
    KnownFailure(
        slug="decimal-comma",
        title="Numbers have a decimal comma",
        when=_seen(Sign.DECIMAL_COMMA),
        cause="numbers are written with a decimal comma, as a locale or to_csv(decimal=',') does",
        fix="write a decimal point: to_csv(decimal='.'), and no locale",
    ),
    KnownFailure(
        slug="header-missing",
        title="The first row is no header",
        when=_seen(Sign.HEADER_MISSING),
        cause="the rows begin at once, as numpy.savetxt or to_csv(header=False) write them",
        fix="write the names of the columns in the first row; see: proctor challenge show",
    ),
    KnownFailure(
        slug="ids-for-names",
        title="Columns have numbers where they are to have names",
        when=_seen(Sign.HEADER_NUMBERED),
        cause="a DataFrame without column names was written, so its columns are called 0, 1, …",
        fix="pd.DataFrame(rows, columns=[…]) with the names of: proctor challenge show",
    ),
    KnownFailure(
        slug="header-doubled",
        title="The header stands there again",
        when=_seen(Sign.HEADER_AGAIN),
        cause="the file is opened for appending (mode 'a') for each batch, and the header is written each time",
        fix="open the file once with mode 'w', and write the header once",
    ),
    KnownFailure(
        slug="written-twice",
        title="All rows stand there twice",
        when=_seen(Sign.TWICE),
        cause="the program appends to a file that it has written before, or handles the sequence twice",
        fix="open the file once with mode 'w', and write each frame once",
    ),
    KnownFailure(
        slug="pandas-index",
        title="There is a column more, the index of pandas",
        when=_seen(Sign.INDEX_COLUMN),
        cause="pandas writes its own index as a first column without a name",
        fix="to_csv(…, index=False)",
        narrows=("header-missing",),
    ),
    KnownFailure(
        slug="only-a-header",
        title="There are no rows",
        when=_seen(Sign.NO_ROWS),
        cause="only the header was written: no frame was found, or the rows were never flushed",
        fix="check the pattern of the frames' names, end with an error where there are none, and close the file",
    ),
    KnownFailure(
        slug="text-order",
        title="Frames are sorted as text: 1, 10, 2",
        when=_seen(Sign.TEXT_ORDER),
        cause="frames are sorted by their names as text, which puts 10 before 2",
        fix="sort by number: sorted(names, key=lambda name: int(name.stem))",
    ),
    KnownFailure(
        slug="no-order",
        title="Rows are not in order",
        when=_seen(Sign.NO_ORDER),
        cause="rows are written as workers finish, or the data loader shuffles",
        fix="shuffle=False, and sort the rows by frame before they are written",
    ),
    KnownFailure(
        slug="off-by-one",
        title="Frames are off by one",
        when=_seen(Sign.OFF_BY_ONE),
        cause="frames are counted from another number than the challenge does (0 or 1), or one is left out or added: "
        "the first or last of a difference, a window or range()",
        fix="count from the challenge's first frame, and write exactly one row a frame",
    ),
    KnownFailure(
        slug="last-frames-missing",
        title="The last frames are missing",
        when=_seen(Sign.TOO_SHORT),
        cause="the last, smaller batch is dropped, a window does not reach the end, or the program stopped early",
        fix="drop_last=False, and pad the last window",
    ),
    KnownFailure(
        slug="other-step",
        title="Frames are numbered in other steps",
        when=_seen(Sign.OTHER_STEP),
        cause="frames are skipped, or numbered by time or by the original video in place of one by one",
        fix="write a row for every frame that is handed out, numbered as the challenge says",
    ),
    KnownFailure(
        slug="names-for-ids",
        title="Labels are names where ids are due",
        when=_seen(Sign.NAMES),
        cause="labels are written by their names",
        fix="write the ids, whole numbers; proctor challenge show lists them",
    ),
    KnownFailure(
        slug="not-a-number",
        title="There are empty cells, NaN or infinity",
        when=_seen(Sign.NOT_A_NUMBER),
        cause="a prediction is missing or is NaN: a division by 0, half precision that overflowed, or a join "
        "without match",
        fix="torch.isfinite(…).all() before they are written, and a label for every frame",
    ),
    KnownFailure(
        slug="ids-with-a-point",
        title="Ids are written as decimal numbers",
        when=_seen(Sign.FLOAT_IDS),
        cause="labels are floats, as pandas makes them of a column that has held NaN",
        fix="astype(int) before they are written",
    ),
    KnownFailure(
        slug="probabilities-for-labels",
        title="Probabilities stand where labels are due",
        when=_seen(Sign.PROBABILITIES),
        cause="the model's probabilities are written in place of the label it decides for",
        fix="write the id of the largest: scores.argmax(), mapped to the challenge's ids",
    ),
    KnownFailure(
        slug="percent",
        title="Scores go to 100",
        when=_seen(Sign.PERCENT),
        cause="scores are written as percentages, or as other numbers greater than 1",
        fix="write what the challenge asks for: probabilities from 0 to 1 where it wants scores, ids where it "
        "wants labels",
    ),
    KnownFailure(
        slug="logits",
        title="Scores are logits",
        when=_seen(Sign.LOGITS),
        cause="the model's raw outputs are written, before softmax or sigmoid",
        fix="apply softmax (one label a frame) or sigmoid (several), and argmax where labels are due",
    ),
    KnownFailure(
        slug="unknown-labels",
        title="There are labels that the challenge does not know",
        when=_seen(Sign.UNKNOWN_LABELS),
        cause="the model's class numbers are written as they are, and the challenge's ids are others",
        fix="map them to the challenge's ids; proctor challenge show lists them",
    ),
    KnownFailure(
        slug="python-text",
        title="Python's own notation stands where JSON is due",
        when=_seen(Sign.PYTHON_TEXT),
        cause="str() of a dictionary was written: JSON knows no single quotation marks, True, False or None",
        fix="json.dump(…, file)",
    ),
    KnownFailure(
        slug="mask-as-jpeg",
        title="A mask is a JPEG file",
        when=_seen(Sign.JPEG),
        cause="the mask was saved as JPEG, which changes the values of pixels",
        fix="save it as PNG, under a name that ends in .png",
    ),
    KnownFailure(
        slug="mask-in-another-format",
        title="A mask is no PNG file",
        when=_seen(Sign.OTHER_IMAGE),
        cause="the mask was saved as BMP, TIFF, GIF or the like",
        fix="Image.fromarray(mask).save(path, format='PNG')",
    ),
    KnownFailure(
        slug="mask-size",
        title="A mask has another size than its frame",
        when=_seen(Sign.IMAGE_SIZE),
        cause="the mask has the size the model works in, or width and height are swapped",
        fix="scale it back to the frame's size, with nearest neighbour, and mind (height, width) against (width, "
        "height)",
    ),
    KnownFailure(
        slug="colours-for-labels",
        title="A mask is coloured where ids are due",
        when=_seen(Sign.COLOUR),
        cause="the mask is an image to look at (RGB), not an image of class ids",
        fix="save the array of ids itself: Image.fromarray(ids.astype('uint8')), mode L or P",
    ),
)
