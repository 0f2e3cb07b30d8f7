from .question_answering.settings import ReadingSettings as ReadingSettings
